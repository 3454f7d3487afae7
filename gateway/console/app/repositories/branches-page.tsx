/** The branches and tags of a repository. */
import type { PageParameters } from "../lib/pages.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireRef, WireRepoDetails } from "../lib/wire.ts";
import { Badge } from "../parts/bits.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty } from "../parts/page.tsx";
import { RepoPage } from "./repo-page.tsx";
import { type RepoPlace, shortHash, shortRef, useRepo } from "./repo-place.ts";

const REFRESH_MS = 15_000;

export function BranchesPage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  return (
    <RepoPage
      parameters={parameters}
      current="branches"
      request={{ path: place.rest("/refs?limit=1000") }}
    >
      {(repo) => (
        <>
          <RefList place={place} repo={repo} kind="heads" title="Branches" />
          <RefList place={place} repo={repo} kind="tags" title="Tags" />
        </>
      )}
    </RepoPage>
  );
}

interface RefListProps {
  place: RepoPlace;
  repo: WireRepoDetails;
  kind: "heads" | "tags";
  title: string;
}

function RefList({ place, repo, kind, title }: RefListProps) {
  const path = place.rest(`/refs?limit=1000&prefix=refs/${kind}/`);
  const refs = useRest<WireRef[]>(path, { everyMs: REFRESH_MS });
  const base = `refs/heads/${repo.default_branch}`;
  const isBranch = kind === "heads";
  const empty = <Empty title={isBranch ? "There is no branch yet" : "There is no tag yet"} />;
  return (
    <Card title={title}>
      <List
        reading={refs}
        label={title}
        noun={isBranch ? "branch" : "tag"}
        {...(isBranch && { nouns: "branches" })}
        keyOf={({ name }) => name}
        empty={empty}
        columns={[
          {
            name: "Name",
            cell: ({ name }) => <Link to={place.page("", { ref: name })}>{shortRef(name)}</Link>,
          },
          {
            name: isBranch ? "Commit" : "Object",
            cell: ({ hash }) => (
              <Link to={isBranch ? place.page(`commit/${hash}`) : place.page("", { ref: hash })}>
                <code>{shortHash(hash)}</code>
              </Link>
            ),
          },
          { name: "State", cell: (ref) => <RefState reference={ref} /> },
        ]}
        actions={({ name, is_default: isDefault }) =>
          !isDefault && (
            <Link class="button small second" to={place.page("compare", { base, head: name })}>
              Compare
            </Link>
          )
        }
      />
    </Card>
  );
}

function RefState({ reference }: { reference: WireRef }) {
  const { is_default: isDefault, is_protected: isProtected } = reference;
  return (
    <span class="badges">
      {isDefault && <Badge tone="good">default</Badge>}
      {isProtected && <Badge tone="quiet">protected</Badge>}
      {!isDefault && !isProtected && <span class="quiet">not protected</span>}
    </span>
  );
}
