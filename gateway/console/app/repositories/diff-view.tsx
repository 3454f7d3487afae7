/** A difference, file by file. */
import { useMemo, useState } from "preact/hooks";
import { counted } from "../lib/format.ts";
import type { WireDiff } from "../lib/wire.ts";
import { Button } from "../parts/button.tsx";
import { Empty, Scroll, State, type Tone } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";
import { type PatchLine, parsePatch } from "./parse-patch.ts";

/** Maximum number of a file's lines that are shown at first. A button shows the rest. */
const LINES_MAX = 500;
/** Files that are open at first. */
const OPEN_FILES_MAX = 30;
const SIGNS = { added: "+", removed: "-", same: " ", hunk: "" } as const;

type DiffFile = WireDiff["files"][number];

export function DiffView({ diff }: { diff: WireDiff }) {
  const { files, patch, truncated } = diff;
  const parsed = useMemo(() => parsePatch(patch), [patch]);
  const sum = (key: "additions" | "deletions") =>
    files.reduce((total, file) => total + (file[key] ?? 0), 0);
  if (files.length === 0) {
    return (
      <Card>
        <Empty title="There is no difference" />
      </Card>
    );
  }
  return (
    <>
      <p class="diff-sum">
        {counted(files.length, "file")} changed, <span class="added">+{sum("additions")}</span>{" "}
        <span class="removed">−{sum("deletions")}</span>
      </p>
      {truncated && (
        <p class="note hint-note">
          There is more than is shown here. Clone the repository to see all of it.
        </p>
      )}
      {files.map((file, index) => (
        <FileDiff
          key={file.path}
          file={file}
          lines={parsed[index] ?? []}
          isOpen={index < OPEN_FILES_MAX}
        />
      ))}
    </>
  );
}

const TONES: Readonly<Record<DiffFile["status"], Tone>> = {
  added: "good",
  deleted: "bad",
  modified: "quiet",
  renamed: "busy",
  type_changed: "busy",
};

interface FileDiffProps {
  file: DiffFile;
  lines: readonly PatchLine[];
  isOpen: boolean;
}

function FileDiff({ file, lines, isOpen }: FileDiffProps) {
  const [isShown, setShown] = useState(isOpen);
  const [count, setCount] = useState(LINES_MAX);
  const { path, old_path: before, status, additions, deletions } = file;
  const rest = lines.length - count;
  return (
    <section class="card flush" aria-label={path}>
      <div class="latest">
        <button
          type="button"
          class="plain file-name"
          aria-expanded={isShown}
          onClick={() => setShown(!isShown)}
        >
          {before ? `${before} → ${path}` : path}
        </button>
        <span class="diff-state">
          <State of={status} tones={TONES} />{" "}
          {additions !== null && <span class="added">+{additions}</span>}{" "}
          {deletions !== null && <span class="removed">−{deletions}</span>}
        </span>
      </div>
      {isShown && lines.length > 0 && <Lines path={path} lines={lines.slice(0, count)} />}
      {isShown && lines.length === 0 && (
        <p class="quiet padded">
          {additions === null ? "This file is no text." : "No line is different."}
        </p>
      )}
      {isShown && rest > 0 && (
        <p class="padded">
          <Button onClick={() => setCount(count + 5_000)}>
            Show {counted(Math.min(rest, 5_000), "more line")}
          </Button>
        </p>
      )}
    </section>
  );
}

function Lines({ path, lines }: { path: string; lines: readonly PatchLine[] }) {
  return (
    <Scroll label={`Changes of ${path}`}>
      <pre class="source diff">
        <code class="block">
          {lines.map(({ kind, text, before, after }, index) => (
            <span
              key={index}
              class={`line ${kind}`}
              data-before={before ?? ""}
              data-after={after ?? ""}
            >
              {SIGNS[kind]}
              {text}
              {"\n"}
            </span>
          ))}
        </code>
      </pre>
    </Scroll>
  );
}
