/**
 * The page of a directory of a repository, with its README. At the root, it also shows how to clone the repository.
 */
import { useAccount } from "../lib/account.tsx";
import { queryOf, RestError, resultOf } from "../lib/rest.ts";
import { useLoaded } from "../lib/use-rest.ts";
import type { WireCommit, WireRepoDetails, WireTreeEntry } from "../lib/wire.ts";
import { DownloadButton } from "../parts/button.tsx";
import { Fields, useForm } from "../parts/form.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { LongList, WHOLE_ROWS_MAX } from "../parts/long-list.tsx";
import { Empty, Time } from "../parts/note.tsx";
import { Card, Read } from "../parts/page.tsx";
import { Readme } from "./document.tsx";
import { RepoPage } from "./repo-page.tsx";
import {
  encodePath,
  FileIcon,
  PathBar,
  RefPicker,
  type RepoPlace,
  shortHash,
  subjectOf,
  useRepo,
} from "./repo-place.tsx";
import { CloneBox } from "./repo-tokens-page.tsx";

export function FilesPage() {
  return (
    <RepoPage current="" title={useRepo().path || undefined}>
      {(repo) => <Files repo={repo} />}
    </RepoPage>
  );
}

function Files({ repo }: { repo: WireRepoDetails }) {
  const { go } = useAccount();
  const place = useRepo();
  const { reference, path } = place;
  const key = `${place.rest("")} ${reference ?? ""} ${path} ${repo.last_push_at}`;
  const tree = useLoaded(key, (signal) => readTree(place, signal));
  const current = reference ?? `refs/heads/${repo.default_branch}`;
  const show = (ref: string) => go(place.page(path && `tree/${encodePath(path)}`, { ref }));
  return (
    <div class={path === "" ? "with-aside" : ""}>
      <div class="stack">
        <div class="repo-bar">
          <RefPicker value={current} onChange={show} />
          <PathBar />
          <FilesActions current={current} />
        </div>
        <Read reading={tree}>
          {({ commit, entries }) =>
            commit ? (
              <>
                <section class="card flush" aria-label="Files">
                  <LatestCommit commit={commit} />
                  <Entries entries={entries} />
                </section>
                <Readme entries={entries} />
              </>
            ) : (
              <Card>
                <Empty title="This repository is empty">
                  <p>Push to it with git, or add its first file here.</p>
                  <Link class="button" to={place.page("edit/", { ref: current })}>
                    Add a file
                  </Link>
                </Empty>
              </Card>
            )
          }
        </Read>
      </div>
      {path === "" && (
        <div class="aside">
          <CloneBox repo={repo} />
        </div>
      )}
    </div>
  );
}

function FilesActions({ current }: { current: string }) {
  const { may } = useAccount();
  const place = useRepo();
  const below = place.path && `${encodePath(place.path)}/`;
  return (
    <div class="actions">
      {may("artifacts.write") && current.startsWith("refs/heads/") && (
        <ButtonLink to={place.page(`edit/${below}`, { ref: current })}>New file</ButtonLink>
      )}
      <DownloadButton
        label="Download zip"
        path={place.rest(`/archive/${encodeURIComponent(current)}.zip`)}
        name={`${place.name}.zip`}
      />
    </div>
  );
}

function LatestCommit({ commit }: { commit: WireCommit }) {
  const { page, reference } = useRepo();
  return (
    <div class="latest">
      <span class="latest-text">
        <strong>{commit.author.name}</strong>{" "}
        <Link to={page(`commit/${commit.hash}`)}>{subjectOf(commit.message)}</Link>
      </span>
      <span class="quiet">
        <code>{shortHash(commit.hash)}</code> · <Time at={commit.committedAt * 1_000} /> ·{" "}
        <Link to={page("history", { ref: reference })}>History</Link>
      </span>
    </div>
  );
}

function Entries({ entries }: { entries: readonly WireTreeEntry[] }) {
  const { page, path, reference: ref } = useRepo();
  const below = path && `${path}/`;
  const pageOf = ({ name, type }: WireTreeEntry) =>
    page(`${type === "tree" ? "tree" : "file"}/${encodePath(below + name)}`, { ref });
  const form = useForm({ text: "" });
  const found = entries.filter(({ name }) => name.includes(form.values.text));
  return (
    <>
      {entries.length > WHOLE_ROWS_MAX && (
        <div class="filters">
          <Fields form={form} fields={[{ name: "text", label: "Name contains", type: "search" }]} />
        </div>
      )}
      <LongList
        class="entries"
        rows={found}
        keyOf={({ name }) => name}
        show={(entry) => (
          <>
            <FileIcon type={entry.type} />
            {entry.type === "gitlink" ? (
              <span>
                {entry.name} <span class="quiet">submodule at {shortHash(entry.hash)}</span>
              </span>
            ) : (
              <Link to={pageOf(entry)}>{entry.name}</Link>
            )}
            <NoteOf entry={entry} />
          </>
        )}
      />
    </>
  );
}

function NoteOf({ entry: { type } }: { entry: WireTreeEntry }) {
  if (type === "exec") return <span class="quiet">executable</span>;
  return type === "symlink" ? <span class="quiet">link</span> : null;
}

interface FoundTree {
  /** The latest commit of the ref. Undefined if the repository is empty. */
  commit: WireCommit | undefined;
  entries: WireTreeEntry[];
}

/** Resolves with the entries of a directory, subdirectories first. */
async function readTree(
  { rest, reference, path }: RepoPlace,
  signal: AbortSignal,
): Promise<FoundTree> {
  const query = queryOf({ ref: reference, limit: "1" });
  const [commit] = await resultOf<WireCommit[]>({ path: rest(`/log${query}`) }, signal);
  if (!commit) return { commit: undefined, entries: [] };
  const read = (hash: string) => resultOf<WireTreeEntry[]>({ path: rest(`/tree/${hash}`) }, signal);
  let entries = await read(commit.treeHash);
  for (const step of path === "" ? [] : path.split("/")) {
    const found = entries.find(({ name, type }) => name === step && type === "tree");
    if (!found) throw new RestError(404, [{ message: `There is no directory ${path} here` }]);
    entries = await read(found.hash);
  }
  return { commit, entries: entries.toSorted(directoriesFirst) };
}

/** A collator compares ten times as fast as localeCompare. */
const { compare: inOrder } = new Intl.Collator("en");

const directoriesFirst = (one: WireTreeEntry, other: WireTreeEntry) =>
  Number(other.type === "tree") - Number(one.type === "tree") || inOrder(one.name, other.name);
