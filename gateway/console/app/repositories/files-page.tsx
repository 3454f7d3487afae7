/** A directory of a repository, with its README; at the root also how to clone it. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { Link, navigate, usePlace } from "../lib/router.tsx";
import { useLoaded } from "../lib/use-loaded.ts";
import type { WireCommit, WireRepoDetails, WireTreeEntry } from "../lib/wire.ts";
import { Time } from "../parts/bits.tsx";
import { DownloadButton } from "../parts/download-button.tsx";
import { TextField } from "../parts/form.tsx";
import { LongList, WHOLE_ROWS_MAX } from "../parts/long-list.tsx";
import { Card, Empty, Read } from "../parts/page.tsx";
import { CloneBox } from "./clone-box.tsx";
import { FileIcon } from "./file-icon.tsx";
import { PathBar } from "./path-bar.tsx";
import { readTree } from "./read-tree.ts";
import { Readme } from "./readme.tsx";
import { RefPicker, useRefs } from "./ref-picker.tsx";
import { RepoPage } from "./repo-page.tsx";
import { encodePath, type RepoPlace, shortHash, subjectOf, useRepo } from "./repo-place.ts";

export function FilesPage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  const { query } = usePlace();
  const reference = query.get("ref") ?? undefined;
  const { path = "" } = parameters;
  return (
    <RepoPage parameters={parameters} current="" title={path === "" ? undefined : path}>
      {(repo) => <Files place={place} repo={repo} reference={reference} path={path} />}
    </RepoPage>
  );
}

interface FilesProps {
  place: RepoPlace;
  repo: WireRepoDetails;
  reference: string | undefined;
  path: string;
}

function Files({ place, repo, reference, path }: FilesProps) {
  const refs = useRefs(place);
  const key = `${place.rest("")} ${reference ?? ""} ${path} ${repo.last_push_at}`;
  const tree = useLoaded(key, (signal) => readTree(place, reference, path, signal));
  const current = reference ?? `refs/heads/${repo.default_branch}`;
  const show = (ref: string) => navigate(place.page(path && `tree/${encodePath(path)}`, { ref }));
  return (
    <div class={path === "" ? "with-aside" : ""}>
      <div class="stack">
        <div class="repo-bar">
          <RefPicker refs={refs.value ?? []} value={current} onChange={show} />
          <PathBar place={place} reference={reference} path={path} />
          <FilesActions place={place} current={current} path={path} />
        </div>
        <Read reading={tree}>
          {({ commit, entries }) =>
            commit ? (
              <>
                <section class="card flush" aria-label="Files">
                  <LatestCommit place={place} commit={commit} reference={reference} />
                  <Entries place={place} reference={reference} path={path} entries={entries} />
                </section>
                <Readme place={place} reference={current} path={path} entries={entries} />
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
          <CloneBox place={place} repo={repo} />
        </div>
      )}
    </div>
  );
}

function FilesActions({
  place,
  current,
  path,
}: {
  place: RepoPlace;
  current: string;
  path: string;
}) {
  const { may } = useAccount();
  const isBranch = current.startsWith("refs/heads/");
  return (
    <div class="actions">
      {may("artifacts.write") && isBranch && (
        <Link
          class="button small second"
          to={place.page(`edit/${path && `${encodePath(path)}/`}`, { ref: current })}
        >
          New file
        </Link>
      )}
      <DownloadButton
        label="Download zip"
        path={place.rest(`/archive/${encodeURIComponent(current)}.zip`)}
        name={`${place.name}.zip`}
      />
    </div>
  );
}

interface LatestProps {
  place: RepoPlace;
  commit: WireCommit;
  reference: string | undefined;
}

function LatestCommit({ place, commit, reference }: LatestProps) {
  return (
    <div class="latest">
      <span class="latest-text">
        <strong>{commit.author.name}</strong>{" "}
        <Link to={place.page(`commit/${commit.hash}`)}>{subjectOf(commit.message)}</Link>
      </span>
      <span class="quiet">
        <code>{shortHash(commit.hash)}</code> · <Time at={commit.committedAt * 1_000} /> ·{" "}
        <Link to={place.page("history", { ref: reference })}>History</Link>
      </span>
    </div>
  );
}

interface EntriesProps extends Omit<LatestProps, "commit"> {
  path: string;
  entries: readonly WireTreeEntry[];
}

function Entries({ place, reference, path, entries }: EntriesProps) {
  const below = path && `${path}/`;
  const pageOf = ({ name, type }: WireTreeEntry) =>
    place.page(`${type === "tree" ? "tree" : "file"}/${encodePath(below + name)}`, {
      ref: reference,
    });
  const [text, setText] = useState("");
  const found = entries.filter(({ name }) => name.includes(text));
  return (
    <>
      {entries.length > WHOLE_ROWS_MAX && (
        <div class="filters">
          <TextField label="Name contains" type="search" value={text} onChange={setText} />
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
