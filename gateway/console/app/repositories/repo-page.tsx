/** The frame that the pages of one repository share: its name, its state and its tabs. */
import type { ComponentChildren } from "preact";
import type { RestRequest } from "../lib/rest.ts";
import { type Reading, useRest } from "../lib/use-rest.ts";
import type { WireRepoDetails } from "../lib/wire.ts";
import { Badge, Empty } from "../parts/note.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { repoPlace, useRepo } from "./repo-place.tsx";

const REFRESH_MS = 30_000;
const REFRESH_WHILE_BUSY_MS = 1_000;
const TABS = [
  ["", "Files"],
  ["history", "History"],
  ["branches", "Branches"],
  ["tokens", "Tokens"],
  ["settings", "Settings"],
] as const;

interface RepoPageProps {
  current: (typeof TABS)[number][0];
  title?: string | undefined;
  request?: RestRequest | undefined;
  children: (repo: WireRepoDetails, reload: () => void) => ComponentChildren;
}

export function RepoPage({ current, title, request, children }: RepoPageProps) {
  const repo = useRepo();
  const reading = useRepoDetails(repo.rest(""));
  const { value } = reading;
  const lead = [value?.description, originOf(value?.source)].filter(Boolean).join(" · ");
  return (
    <Page
      title={title ?? repo.name}
      above={
        title === undefined
          ? [repo.namespace, repoPlace(repo.namespace)]
          : [`${repo.namespace} / ${repo.name}`, repo.page()]
      }
      lead={title === undefined ? lead : undefined}
      request={request ?? { path: repo.rest("") }}
      tabs={{
        label: "Repository",
        pages: TABS.map(([path, name]) => [repo.page(path), name] as const),
        current: repo.page(current),
      }}
    >
      <Read reading={reading}>
        {(found) =>
          found.status === "ready" || current === "settings" ? (
            <>
              {found.status_reason && <p class="note hint-note">{found.status_reason}</p>}
              {children(found, reading.reload)}
            </>
          ) : (
            <NotReady repo={found} />
          )
        }
      </Read>
    </Page>
  );
}

/** Reads the repository's details. Reads often while an import or fork runs, so that its progress is live. */
function useRepoDetails(path: string): Reading<WireRepoDetails> {
  const reading = useRest<WireRepoDetails>(path, REFRESH_MS);
  const isBusy = reading.value?.status === "importing" || reading.value?.status === "forking";
  const quick = useRest<WireRepoDetails>(isBusy ? path : undefined, REFRESH_WHILE_BUSY_MS);
  return isBusy && quick.value ? { ...reading, value: quick.value } : reading;
}

const STEPS = {
  asking: "Asking the other host what there is",
  receiving: "Receiving the objects",
  resolving: "Resolving differences",
  checking: "Checking every object",
  large_files: "Receiving large files",
} as const;

function NotReady({ repo }: { repo: WireRepoDetails }) {
  const { status, status_progress: progress, status_reason: reason, source } = repo;
  if (status === "failed") {
    return (
      <Card>
        <Empty title="This repository could not be filled">
          <p>{reason ?? "The platform gives no reason."}</p>
          <p>Delete it under Settings, and import it again.</p>
        </Empty>
      </Card>
    );
  }
  const step = progress ? STEPS[progress.step] : "Waiting to begin";
  return (
    <Card title={status === "importing" ? "Importing" : "Forking"}>
      <p aria-live="polite">
        <Badge tone="busy">{status}</Badge> {step}
        {progress?.percent != null && `: ${progress.percent} %`}
      </p>
      <progress aria-label="Progress" max={100} value={progress?.percent ?? undefined} />
      <p class="quiet">{originOf(source)}. You can leave this page: the work goes on.</p>
    </Card>
  );
}

/** Describes the origin of the repository's first content. */
function originOf(source: string | null | undefined): string {
  if (!source) return "";
  const [kind, ...rest] = source.split(":");
  return `${kind === "git" ? "Imported from" : "Forked from"} ${rest.join(":")}`;
}
