/** At how many hosts a job wants requests at once: the others wait in line, linked through their rows. */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { CrawlJobState } from "./crawl-job-state.ts";
import { hostRow, hostState } from "./host-queues.ts";
import type { JobDraft } from "./job-draft.ts";

/** Hosts at which one job wants requests at once: those that answer nobody hold up a lane for all, some two minutes for so many. */
export const JOB_HOSTS_MAX = 100;

type Line = DeepReadonly<NonNullable<CrawlJobState["hosts"]>>;

const lineOf = ({ state }: JobDraft): Line => state.hosts ?? { open: 0 };

/** Whether requests may be wanted there now; where not, it is in line. */
export function openHost(draft: JobDraft, host: string): boolean {
  const row = hostState(draft, host);
  if (row.open || row.waits) return row.open === true;
  const line = lineOf(draft);
  const { open, first = host, last } = line;
  if (open < JOB_HOSTS_MAX) {
    draft.write(hostRow(host), { ...row, open: true });
    draft.state.hosts = { ...line, open: open + 1 };
    return true;
  }
  draft.write(hostRow(host), { ...row, waits: true });
  if (last !== undefined) draft.write(hostRow(last), { ...hostState(draft, last), behind: host });
  draft.state.hosts = { open, first, last: host };
  return false;
}

/** Nothing waits there any more. */
export function closeHost(draft: JobDraft, host: string): void {
  const { open } = hostState(draft, host);
  draft.write(hostRow(host), null);
  const line = lineOf(draft);
  if (open) draft.state.hosts = { ...line, open: line.open - 1 };
}

/** The first in line, which is in it no more, where there is room for one. */
export function nextInLine(draft: JobDraft): string | undefined {
  const { open, first, last } = lineOf(draft);
  if (first === undefined || open >= JOB_HOSTS_MAX) return undefined;
  const { waits: _waits, behind, ...row } = hostState(draft, first);
  draft.write(hostRow(first), row);
  const rest = behind === undefined || last === undefined ? {} : { first: behind, last };
  draft.state.hosts = { open, ...rest };
  return first;
}
