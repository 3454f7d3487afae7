/** One commit: its message, who made it, and what it changed. */
import type { PageParameters } from "../lib/pages.ts";
import { queryOf } from "../lib/query.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireCommit, WireDiff } from "../lib/wire.ts";
import { Facts, Time } from "../parts/bits.tsx";
import { Card, Read } from "../parts/page.tsx";
import { DiffView } from "./diff-view.tsx";
import { RepoPage } from "./repo-page.tsx";
import { type RepoPlace, shortHash, subjectOf, useRepo } from "./repo-place.ts";

export function CommitPage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  const path = place.rest(`/commit/${parameters.hash}`);
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
      actions={
        <Link class="button small second" to={place.page("", { ref: hash })}>
          Browse files
        </Link>
      }
    >
      {body && <pre class="message">{body}</pre>}
      <Facts
        rows={[
          ["Author", <PersonAt key="a" person={author} at={commit.authoredAt} />],
          (committer.name !== author.name || committer.email !== author.email) && [
            "Committer",
            <PersonAt key="c" person={committer} at={commit.committedAt} />,
          ],
          ["Id", <code key="h">{hash}</code>],
          parents.length > 0 && [
            parents.length > 1 ? "Parents" : "Parent",
            parents.map((parent) => (
              <div key={parent}>
                <Link to={place.page(`commit/${parent}`)}>
                  <code>{shortHash(parent)}</code>
                </Link>
              </div>
            )),
          ],
        ]}
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
