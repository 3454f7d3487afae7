/** The commits of a branch, newest first. */
import type { PageParameters } from "../lib/pages.ts";
import { queryOf } from "../lib/query.ts";
import { Link, navigate, usePlace } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireCommit, WireRepoDetails } from "../lib/wire.ts";
import { Time } from "../parts/bits.tsx";
import { Card, Empty, Read } from "../parts/page.tsx";
import { RefPicker, useRefs } from "./ref-picker.tsx";
import { RepoPage } from "./repo-page.tsx";
import { type RepoPlace, shortHash, subjectOf, useRepo } from "./repo-place.ts";

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
  const refs = useRefs(place);
  const commits = useRest<WireCommit[]>(path, { everyMs: offset === 0 ? REFRESH_MS : undefined });
  const pageAt = (at: number) =>
    place.page("history", { ref: reference, offset: at > 0 ? String(at) : undefined });
  return (
    <div class="stack">
      <div class="repo-bar">
        <RefPicker
          refs={refs.value ?? []}
          value={reference ?? `refs/heads/${repo.default_branch}`}
          onChange={(ref) => navigate(place.page("history", { ref }))}
        />
      </div>
      <Read reading={commits}>
        {(found) =>
          found.length === 0 ? (
            <Card>
              <Empty title="There is no commit here yet">
                <p>Push to the repository with git, or add a file under Files.</p>
              </Empty>
            </Card>
          ) : (
            <>
              <Days place={place} commits={found.slice(0, PAGE)} />
              <nav class="pager" aria-label="Pages of the history">
                {offset > 0 && (
                  <Link class="button small second" to={pageAt(offset - PAGE)}>
                    Newer
                  </Link>
                )}
                {found.length > PAGE && (
                  <Link class="button small second" to={pageAt(offset + PAGE)}>
                    Older
                  </Link>
                )}
              </nav>
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
