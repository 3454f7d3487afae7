/** The records of a crawl by their status, each with its reason and what was kept of it. */
import { useState } from "preact/hooks";
import type { Reading } from "../lib/use-rest.ts";
import type { WireCrawl } from "../lib/wire.ts";
import { SelectField } from "../parts/form.tsx";
import { Card, Empty, Read } from "../parts/page.tsx";
import { RecordState, type WireRecord } from "./crawl-state.tsx";
import { Preview } from "./preview.tsx";

const STATES = [
  "",
  "queued",
  "completed",
  "errored",
  "disallowed",
  "skipped",
  "cancelled",
] as const;

interface RecordsProps {
  reading: Reading<WireCrawl>;
  status: string;
  onStatus: (status: string) => void;
  onNewer: (() => void) | undefined;
  onOlder: (cursor: string) => void;
}

export function Records({ reading, status, onStatus, onNewer, onOlder }: RecordsProps) {
  const [shown, setShown] = useState<string>();
  return (
    <Card title="Pages">
      <div class="filters">
        <SelectField
          label="State"
          value={status}
          onChange={onStatus}
          options={STATES.map((value) => ({ value, label: labelOf(value) }))}
        />
      </div>
      <Read reading={reading}>
        {({ records, cursor, status: of }) => (
          <>
            {records.length === 0 ? (
              <Empty title={emptyTitle(status, of === "running")} />
            ) : (
              <ul class="entries records">
                {records.map((record) => (
                  <RecordLine
                    key={record.url}
                    record={record}
                    isShown={shown === record.url}
                    onShow={(isShown) => setShown(isShown ? record.url : undefined)}
                  />
                ))}
              </ul>
            )}
            <nav class="pager" aria-label="Pages of the list">
              {onNewer && (
                <button type="button" class="small second" onClick={onNewer}>
                  Previous
                </button>
              )}
              {cursor && (
                <button type="button" class="small second" onClick={() => onOlder(cursor)}>
                  Next
                </button>
              )}
            </nav>
          </>
        )}
      </Read>
    </Card>
  );
}

const labelOf = (status: string) =>
  status === "" ? "All" : status.slice(0, 1).toUpperCase() + status.slice(1);

function emptyTitle(status: string, isRunning: boolean): string {
  if (status !== "") return `No page is ${status}`;
  return isRunning ? "The first page is on its way" : "There is no page";
}

interface LineProps {
  record: WireRecord;
  isShown: boolean;
  onShow: (isShown: boolean) => void;
}

function RecordLine({ record, isShown, onShow }: LineProps) {
  const { url, status, metadata, reason } = record;
  const hasContent = [record.markdown, record.html, record.json].some((one) => one !== undefined);
  const notes = [
    metadata?.status !== undefined && `HTTP ${metadata.status}`,
    metadata?.contentType?.split(";")[0],
    metadata?.truncated && "cut off",
    metadata?.cachedAt && "from the cache",
    metadata?.noindex && "noindex",
  ].filter(Boolean);
  return (
    <li>
      <div class="record-line">
        <span class="commit-text">
          <span class="record-title">{metadata?.title || url}</span>
          <span class="quiet">
            {metadata?.title && `${url} · `}
            {notes.join(" · ")}
          </span>
          {reason && <span class={status === "errored" ? "reason" : "quiet"}>{reason}</span>}
        </span>
        <span class="record-side">
          <RecordState status={status} />
          {hasContent && (
            <button
              type="button"
              class="small second"
              aria-expanded={isShown}
              aria-label={`${isShown ? "Close" : "Preview"} ${url}`}
              onClick={() => onShow(!isShown)}
            >
              {isShown ? "Close" : "Preview"}
            </button>
          )}
        </span>
      </div>
      {isShown && <Preview record={record} />}
    </li>
  );
}
