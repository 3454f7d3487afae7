/** The list of a branch's commits, newest first, and the page of one commit with its changes. */
import { useAccount } from "../lib/account.tsx";
import { queryOf } from "../lib/rest.ts";
import { useParameters, usePlace } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireCommit, WireDiff, WireRepoDetails } from "../lib/wire.ts";
import { ButtonLink, Link } from "../parts/link.tsx";
import { Pager } from "../parts/list.tsx";
import { Empty, Facts, Time } from "../parts/note.tsx";
import { Card, Read } from "../parts/page.tsx";
import { DiffView } from "./diff-view.tsx";
import { RepoPage } from "./repo-page.tsx";
import { RefPicker, shortHash, subjectOf, useRepo } from "./repo-place.tsx";

const PAGE = 30;
const REFRESH_MS = 15_000;

export function HistoryPage() {
  const { reference, rest } = useRepo();
  const { query } = usePlace();
  const offset = Number(query.get("offset") ?? 0) || 0;
  const asked = queryOf({ ref: reference, limit: String(PAGE + 1), offset: String(offset) });
  const path = rest(`/log${asked}`);
  return (
    <RepoPage current="history" request={{ path }}>
      {(repo) => <History {...{ repo, offset, path }} />}
    </RepoPage>
  );
}

interface HistoryProps {
  repo: WireRepoDetails;
  offset: number;
  path: string;
}

function History({ repo, offset, path }: HistoryProps) {
  const { go } = useAccount();
  const { reference, page } = useRepo();
  const commits = useRest<WireCommit[]>(path, offset === 0 ? REFRESH_MS : undefined);
  const to = (at: number) => () =>
    go(page("history", { ref: reference, offset: at > 0 ? String(at) : undefined }));
  return (
    <div class="stack">
      <div class="repo-bar">
        <RefPicker
          value={reference ?? `refs/heads/${repo.default_branch}`}
          onChange={(ref) => go(page("history", { ref }))}
        />
      </div>
      <Read reading={commits}>
        {(found) =>
          found.length === 0 ? (
            <Card>
              <Empty title="There is no commit here yet">
                Push to the repository with git, or add a file under Files.
              </Empty>
            </Card>
          ) : (
            <>
              <Days commits={found.slice(0, PAGE)} />
              <Pager
                previous={offset > 0 ? to(offset - PAGE) : undefined}
                next={found.length > PAGE ? to(offset + PAGE) : undefined}
              />
            </>
          )
        }
      </Read>
    </div>
  );
}

const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "long" });

function Days({ commits }: { commits: readonly WireCommit[] }) {
  const place = useRepo();
  const days = new Map<string, WireCommit[]>();
  for (const commit of commits) {
    const name = day.format(commit.committedAt * 1_000);
    days.set(name, [...(days.get(name) ?? []), commit]);
  }
  return (
    <>
      {[...days].map(([name, ofDay]) => (
        <section key={name} aria-label={name} class="day">
          <h2>{name}</h2>
          <ul class="card flush entries commits">
            {ofDay.map((commit) => (
              <li key={commit.hash}>
                <span class="commit-text">
                  <Link to={place.page(`commit/${commit.hash}`)}>{subjectOf(commit.message)}</Link>
                  <span class="quiet">
                    {commit.author.name} · <Time at={commit.committedAt * 1_000} />
                  </span>
                </span>
                <code class="quiet">{shortHash(commit.hash)}</code>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

export function CommitPage() {
  const { hash = "" } = useParameters();
  const path = useRepo().rest(`/commit/${encodeURIComponent(hash)}`);
  const commit = useRest<WireCommit>(path);
  const title = commit.value ? subjectOf(commit.value.message) : shortHash(hash);
  return (
    <RepoPage current="history" title={title} request={{ path }}>
      {() => (
        <Read reading={commit}>
          {(found) => (
            <div class="stack">
              <About commit={found} />
              <Changes commit={found} />
            </div>
          )}
        </Read>
      )}
    </RepoPage>
  );
}

function About({ commit }: { commit: WireCommit }) {
  const place = useRepo();
  const body = commit.message.split("\n").slice(1).join("\n").trim();
  const { author, committer, parents, hash } = commit;
  return (
    <Card
      title="Commit"
      actions={<ButtonLink to={place.page("", { ref: hash })}>Browse files</ButtonLink>}
    >
      {body && <pre class="message">{body}</pre>}
      <Facts
        of={{
          Author: <PersonAt person={author} at={commit.authoredAt} />,
          Committer: (committer.name !== author.name || committer.email !== author.email) && (
            <PersonAt person={committer} at={commit.committedAt} />
          ),
          Id: <code>{hash}</code>,
          [parents.length > 1 ? "Parents" : "Parent"]:
            parents.length > 0 &&
            parents.map((parent) => (
              <div key={parent}>
                <Link to={place.page(`commit/${parent}`)}>
                  <code>{shortHash(parent)}</code>
                </Link>
              </div>
            )),
        }}
      />
    </Card>
  );
}

function PersonAt({ person, at }: { person: WireCommit["author"]; at: number }) {
  return (
    <>
      {person.name} <span class="quiet">{`<${person.email}>`}</span> · <Time at={at * 1_000} />
    </>
  );
}

function Changes({ commit }: { commit: WireCommit }) {
  const query = queryOf({ base: commit.parents[0], head: commit.hash });
  const diff = useRest<WireDiff>(useRepo().rest(`/diff${query}`));
  return <Read reading={diff}>{(found) => <DiffView diff={found} />}</Read>;
}
