/** Collects the links of a report's pages, as far as the crawl follows them. */
import type { PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import { isErrorStatus } from "./settle.ts";
import type { Found } from "./state/crawl-job-state.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { pageOf } from "./state/page-rows.ts";

/** Returns each link once, in the order of the report. Pages of a site repeat each other's links. */
export function foundLinks(
  draft: JobDraft,
  outcomes: readonly PageOutcome[],
): { depth: number; found: Found[] }[] {
  const { source } = draft.plan.plan;
  if (source === "sitemaps") return [];
  const seen = new Set<string>();
  const groups: { depth: number; found: Found[] }[] = [];
  for (const outcome of outcomes) {
    const links = followed(outcome);
    if (links.length === 0) continue;
    const depth = pageOf(draft, outcome.index).depth + 1;
    let group = groups.at(-1);
    if (group?.depth !== depth) {
      group = { depth, found: [] };
      groups.push(group);
    }
    for (const url of links) {
      if (seen.has(url)) continue;
      seen.add(url);
      group.found.push({ url });
    }
  }
  return groups;
}

function followed(outcome: PageOutcome): readonly string[] {
  if (outcome.kind === "skipped") return outcome.links ?? [];
  const isPage = outcome.kind === "fetched" && !isErrorStatus(outcome.metadata.status);
  return isPage ? outcome.links : [];
}
