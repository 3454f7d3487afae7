/** What is different between two branches. */
import type { PageParameters } from "../lib/pages.ts";
import { queryOf } from "../lib/query.ts";
import { navigate, usePlace } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireDiff, WireRepoDetails } from "../lib/wire.ts";
import { Read } from "../parts/page.tsx";
import { DiffView } from "./diff-view.tsx";
import { RefPicker, useRefs } from "./ref-picker.tsx";
import { RepoPage } from "./repo-page.tsx";
import { type RepoPlace, useRepo } from "./repo-place.ts";

export function ComparePage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  return (
    <RepoPage parameters={parameters} current="branches" title="Compare">
      {(repo) => <Compare place={place} repo={repo} />}
    </RepoPage>
  );
}

function Compare({ place, repo }: { place: RepoPlace; repo: WireRepoDetails }) {
  const { query } = usePlace();
  const refs = useRefs(place);
  const own = `refs/heads/${repo.default_branch}`;
  const base = query.get("base") ?? own;
  const head = query.get("head") ?? own;
  const diff = useRest<WireDiff>(place.rest(`/diff${queryOf({ base, head })}`));
  const show = (chosen: { base: string; head: string }) => navigate(place.page("compare", chosen));
  return (
    <div class="stack">
      <div class="repo-bar">
        <RefPicker
          label="From"
          refs={refs.value ?? []}
          value={base}
          onChange={(ref) => show({ base: ref, head })}
        />
        <span aria-hidden="true">→</span>
        <RefPicker
          label="To"
          refs={refs.value ?? []}
          value={head}
          onChange={(ref) => show({ base, head: ref })}
        />
      </div>
      <Read reading={diff}>{(found) => <DiffView diff={found} />}</Read>
    </div>
  );
}
