/** Lists the branches and tags of a repository, and shows the difference between two of them. */

import { useAccount } from "../lib/account.tsx";
import { queryOf } from "../lib/rest.ts";
import { usePlace } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireDiff, WireRef, WireRepoDetails } from "../lib/wire.ts";
import { ButtonLink, Link } from "../parts/link.tsx";
import { ListCard, useList } from "../parts/list.tsx";
import { Badge } from "../parts/note.tsx";
import { Read } from "../parts/page.tsx";
import { DiffView } from "./diff-view.tsx";
import { RepoPage } from "./repo-page.tsx";
import { RefPicker, shortHash, shortRef, useRepo } from "./repo-place.tsx";

export function BranchesPage() {
  const place = useRepo();
  return (
    <RepoPage current="branches" request={{ path: place.rest("/refs?limit=1000") }}>
      {(repo) => (
        <>
          <RefList repo={repo} kind="heads" />
          <RefList repo={repo} kind="tags" />
        </>
      )}
    </RepoPage>
  );
}

function RefList({ repo, kind }: { repo: WireRepoDetails; kind: "heads" | "tags" }) {
  const place = useRepo();
  const refs = useList<WireRef>(place.rest("/refs"), {
    everyMs: 15_000,
    query: { limit: "1000", prefix: `refs/${kind}/` },
  });
  const base = `refs/heads/${repo.default_branch}`;
  const isBranch = kind === "heads";
  const title = isBranch ? "Branches" : "Tags";
  return (
    <ListCard
      list={refs}
      title={title}
      label={title}
      noun={isBranch ? "branch" : "tag"}
      nouns={isBranch ? "branches" : "tags"}
      keyOf={({ name }) => name}
      empty={[isBranch ? "There is no branch yet" : "There is no tag yet"]}
      columns={{
        Name: ({ name }) => <Link to={place.page("", { ref: name })}>{shortRef(name)}</Link>,
        [isBranch ? "Commit" : "Object"]: ({ hash }) => (
          <Link to={isBranch ? place.page(`commit/${hash}`) : place.page("", { ref: hash })}>
            <code>{shortHash(hash)}</code>
          </Link>
        ),
        State: (ref) => <RefState reference={ref} />,
      }}
      actions={({ name, is_default: isDefault }) =>
        !isDefault && (
          <ButtonLink to={place.page("compare", { base, head: name })}>Compare</ButtonLink>
        )
      }
    />
  );
}

function RefState({ reference }: { reference: WireRef }) {
  const { is_default: isDefault, is_protected: isProtected } = reference;
  return (
    <span class="actions">
      {isDefault && <Badge tone="good">default</Badge>}
      {isProtected && <Badge tone="quiet">protected</Badge>}
      {!isDefault && !isProtected && <span class="quiet">not protected</span>}
    </span>
  );
}

export function ComparePage() {
  const place = useRepo();
  const { query } = usePlace();
  const request = query.has("head") ? { path: place.rest(`/diff?${query}`) } : undefined;
  return (
    <RepoPage current="branches" title="Compare" request={request}>
      {(repo) => <Compare repo={repo} />}
    </RepoPage>
  );
}

function Compare({ repo }: { repo: WireRepoDetails }) {
  const place = useRepo();
  const { go } = useAccount();
  const { query } = usePlace();
  const own = `refs/heads/${repo.default_branch}`;
  const base = query.get("base") ?? own;
  const head = query.get("head") ?? own;
  const diff = useRest<WireDiff>(place.rest(`/diff${queryOf({ base, head })}`));
  const show = (chosen: { base: string; head: string }) => go(place.page("compare", chosen));
  return (
    <div class="stack">
      <div class="repo-bar">
        <RefPicker label="From" value={base} onChange={(ref) => show({ base: ref, head })} />
        <span aria-hidden="true">→</span>
        <RefPicker label="To" value={head} onChange={(ref) => show({ base, head: ref })} />
      </div>
      <Read reading={diff}>{(found) => <DiffView diff={found} />}</Read>
    </div>
  );
}
