/** Shares the hosts of an account among its running crawls. */
import { type DeepReadonly, type Envelope, envelope } from "../../../schemas/contract.ts";
import { crawlJob } from "../../../schemas/crawl/crawl-job.ts";
import { CRAWL_HOSTS_MAX } from "../../../schemas/crawl/limits.ts";
import type { CrawlListRow } from "./crawl-list-state.ts";

type Row = DeepReadonly<CrawlListRow>;

/**
 * Returns the number of hosts at which a crawl may want requests at the same time, if this many running crawls of its
 * account are older. Each crawl has half as many as the next older one, and at least one. So all CRAWLS_RUNNING_MAX
 * crawls of an account have at most 240 hosts. A host has a few turns that wait, so the tasks of an account seldom exceed
 * its queue. Tasks without room stay in the outboxes of their shards, where they may delay tasks of other accounts.
 */
export const computeHostsMax = (older: number) =>
  Math.max(1, Math.floor(CRAWL_HOSTS_MAX / 2 ** older));

/** Returns the rows of the running crawls whose number of hosts has changed, and the messages that say so. */
export function shareHosts(all: Iterable<Row>): { rows: Record<string, Row>; send: Envelope[] } {
  const changed = Iterator.from(all)
    .filter(({ status }) => status === "running")
    .toArray()
    .sort((one, other) => one.number - other.number)
    .map((row, older) => ({ row, hostsMax: computeHostsMax(older) }))
    .filter(({ row, hostsMax }) => (row.hostsMax ?? CRAWL_HOSTS_MAX) !== hostsMax);
  return {
    rows: Object.fromEntries(changed.map(({ row, hostsMax }) => [row.id, { ...row, hostsMax }])),
    send: changed.map(({ row, hostsMax }) =>
      envelope(crawlJob, row.id, "hostsShared", { hostsMax }),
    ),
  };
}
