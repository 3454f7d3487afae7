/** The list of a branch's commits, newest first, and the page of one commit with its changes. */
import { useAccount } from "../lib/account.tsx";
import { queryOf } from "../lib/rest.ts";
import { type PageParameters, usePlace } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireCommit, WireDiff, WireRepoDetails } from "../lib/wire.ts";
import { ButtonLink, Link } from "../parts/link.tsx";
import { Pager } from "../parts/list.tsx";
import { Empty, Facts, Time } from "../parts/note.tsx";
import { Card, Read } from "../parts/page.tsx";
import { DiffView } from "./diff-view.tsx";
import { RepoPage } from "./repo-page.tsx";
import { RefPicker, type RepoPlace, shortHash, subjectOf, useRepo } from "./repo-place.tsx";

const PAGE = 30;
const REFRESH_MS = 15_000;

export function HistoryPage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  const { query } = usePlace();
  const reference = query.get("ref") ?? undefined;
  const offset = Number(query.get("offset") ?? 0) || 0;
  const asked = queryOf({ ref: reference, limit: String(PAGE + 1), offset: String(offset) });
  const path = place.rest(`/log${asked}`);
  return (
    <RepoPage parameters={parameters} current="history" request={{ path }}>
      {(repo) => <History {...{ place, repo, reference, offset, path }} />}
    </RepoPage>
  );
}

interface HistoryProps {
  place: RepoPlace;
  repo: WireRepoDetails;
  reference: string | undefined;
  offset: number;
  path: string;
}

function History({ place, repo, reference, offset, path }: HistoryProps) {
  const { go } = useAccount();
  const commits = useRest<WireCommit[]>(path, offset === 0 ? REFRESH_MS : undefined);
  const to = (at: number) => () =>
    go(place.page("history", { ref: reference, offset: at > 0 ? String(at) : undefined }));
  return (
    <div class="stack">
      <div class="repo-bar">
        <RefPicker
          place={place}
          value={reference ?? `refs/heads/${repo.default_branch}`}
          onChange={(ref) => go(place.page("history", { ref }))}
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
              <Days place={place} commits={found.slice(0, PAGE)} />
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

function Days({ place, commits }: { place: RepoPlace; commits: readonly WireCommit[] }) {
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

export function CommitPage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  const path = place.rest(`/commit/${encodeURIComponent(parameters.hash ?? "")}`);
  const commit = useRest<WireCommit>(path);
  const title = commit.value ? subjectOf(commit.value.message) : shortHash(parameters.hash ?? "");
  return (
    <RepoPage parameters={parameters} current="history" title={title} request={{ path }}>
      {() => (
        <Read reading={commit}>
          {(found) => (
            <div class="stack">
              <About place={place} commit={found} />
              <Changes place={place} commit={found} />
            </div>
          )}
        </Read>
      )}
    </RepoPage>
  );
}

function About({ place, commit }: { place: RepoPlace; commit: WireCommit }) {
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

function Changes({ place, commit }: { place: RepoPlace; commit: WireCommit }) {
  const query = queryOf({ base: commit.parents[0], head: commit.hash });
  const diff = useRest<WireDiff>(place.rest(`/diff${query}`));
  return <Read reading={diff}>{(found) => <DiffView diff={found} />}</Read>;
}
