/**
 * Limits the number of hosts at which a job wants requests at the same time. Further hosts wait in a line; the row of
 * each waiting host names the host behind it.
 */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { CRAWL_HOSTS_MAX } from "../../../../schemas/crawl/limits.ts";
import type { CrawlJobState } from "./crawl-job-state.ts";
import { hostRow, hostState } from "./host-queues.ts";
import type { JobDraft } from "./job-draft.ts";

type Line = DeepReadonly<NonNullable<CrawlJobState["hosts"]>>;

const lineOf = ({ state }: JobDraft): Line => state.hosts ?? { open: 0 };
const readHostsMax = ({ state }: JobDraft) => state.hostsMax ?? CRAWL_HOSTS_MAX;

/** Returns whether the job may want requests at the host now. If not, the host joins the line of waiting hosts. */
export function openHost(draft: JobDraft, host: string): boolean {
  const row = hostState(draft, host);
  if (row.open || row.waits) return row.open === true;
  const line = lineOf(draft);
  const { open, first = host, last } = line;
  if (open < readHostsMax(draft)) {
    draft.write(hostRow(host), { ...row, open: true });
    draft.state.hosts = { ...line, open: open + 1 };
    return true;
  }
  draft.write(hostRow(host), { ...row, waits: true });
  if (last !== undefined) draft.write(hostRow(last), { ...hostState(draft, last), behind: host });
  draft.state.hosts = { open, first, last: host };
  return false;
}

/** Closes a host at which nothing waits any more. */
export function closeHost(draft: JobDraft, host: string): void {
  freePlace(draft, host);
  draft.write(hostRow(host), null);
}

/** Gives the place of a paused host to the next one in the line. The host needs a place again when it continues. */
export function freePlace(draft: JobDraft, host: string): void {
  const { open, told: _told, ...row } = hostState(draft, host);
  if (!open) return;
  draft.write(hostRow(host), row);
  const line = lineOf(draft);
  draft.state.hosts = { ...line, open: line.open - 1 };
}

/** Takes the first host from the line if there is a free place. */
export function nextInLine(draft: JobDraft): string | undefined {
  const { open, first, last } = lineOf(draft);
  if (first === undefined || open >= readHostsMax(draft)) return undefined;
  const { waits: _waits, behind, ...row } = hostState(draft, first);
  draft.write(hostRow(first), row);
  const rest = behind === undefined || last === undefined ? {} : { first: behind, last };
  draft.state.hosts = { open, ...rest };
  return first;
}
