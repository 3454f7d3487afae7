/**
 * Queues of waiting pages, one for each host. Each page's row names the next page, so adding or removing a page costs
 * the same in a queue of any length.
 */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { HostRow, PageRow } from "./crawl-job-state.ts";
import type { JobDraft } from "./job-draft.ts";
import { addressOf } from "./page-address.ts";
import { pageOf, writePage } from "./page-rows.ts";

type Host = DeepReadonly<HostRow>;
type Page = DeepReadonly<PageRow>;

export const hostOfUrl = (url: string): string => new URL(url).host;
export const hostRow = (host: string) => `h/${host}`;
export const hostState = (draft: JobDraft, host: string): Host =>
  draft.findRow("host", hostRow(host)) ?? { type: "host", queued: 0 };

/** Changes a page from in flight to queued, at the beginning or the end of its host's queue. */
export function enqueue(draft: JobDraft, index: number, page: Page, place: "first" | "last"): void {
  const { state } = draft;
  const host = hostOfUrl(addressOf(page));
  const { first = index, last = index, ...queue } = hostState(draft, host);
  const { next: _next, ...alone } = page;
  const isOnly = queue.queued === 0;
  const next = place === "first" && !isOnly ? { next: first } : {};
  writePage(draft, index, { ...alone, status: "queued", ...next });
  if (place === "last" && !isOnly) {
    writePage(draft, last, { ...pageOf(draft, last), next: index });
  }
  draft.write(hostRow(host), {
    ...queue,
    queued: queue.queued + 1,
    first: isOnly || place === "first" ? index : first,
    last: isOnly || place === "last" ? index : last,
  });
  draft.touchedHosts.add(host);
  state.queued += 1;
  state.inFlight -= 1;
}

/** Returns the first page of a host's queue. */
export function firstOf(draft: JobDraft, host: string): { index: number; page: Page } | undefined {
  const { first: index } = hostState(draft, host);
  return index === undefined ? undefined : { index, page: pageOf(draft, index) };
}

/** Takes the first page from a host's queue. The page is then in flight. */
export function dequeue(draft: JobDraft, host: string): void {
  const { state } = draft;
  const { first: index, last, ...queue } = hostState(draft, host);
  assert(index !== undefined && last !== undefined, `${host} has a page in its queue`);
  const { next, ...page } = pageOf(draft, index);
  writePage(draft, index, { ...page, status: "in_flight" });
  const rest = next === undefined ? {} : { first: next, last };
  draft.write(hostRow(host), { ...queue, ...rest, queued: queue.queued - 1 });
  draft.touchedHosts.add(host);
  state.queued -= 1;
  state.inFlight += 1;
}
