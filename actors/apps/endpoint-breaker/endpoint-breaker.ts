/**
 * Stops webhooks to an endpoint that keeps failing. From time to time it admits one webhook to test whether the
 * endpoint works again.
 */
import { z } from "zod";
import { endpointBreaker } from "../../../schemas/apps/outgoing-webhook.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";

/**
 * Number of consecutive failures that opens an endpoint's breaker. The time below is how long it stays open at first.
 * Each failed probe doubles this time, up to the maximum.
 */
export const BREAKER_FAILURES_MAX = 5;
export const BREAKER_OPEN_MS = 30_000;
/**
 * Longest time for which a breaker stays open. It is shorter than the time for which an idle actor stays in memory,
 * because a breaker's state is only in memory.
 */
export const BREAKER_OPEN_MS_MAX = 300_000;
/** If the probe has no result after this time, another webhook becomes the probe. */
export const BREAKER_PROBE_MS_MAX = 60_000;
/** Number of reported failures that are remembered to recognize repeated reports. */
const BREAKER_REPORTS_KEPT = 32;

type State = z.infer<typeof State>;
const State = z.object({
  /** Consecutive failures. */
  failures: z.int().min(0),
  /**
   * Present while the breaker is open: `until` when, and `forMs`, the length of this opening. If the probe fails, the
   * next opening is twice as long.
   */
  open: z
    .object({
      until: EpochMs,
      forMs: z.int().min(1),
      probe: z.object({ id: Id, at: EpochMs }).optional(),
    })
    .optional(),
  /** Ids of the latest reports of failures. */
  reported: z.array(Id),
});

/**
 * Stored at: account id, `.`, 32 hex of a SHA-256 of host and path
 *
 * State: nothing: `{ failures, open?: { until, forMs, probe? }, reported: [id] }` lives in memory and starts anew
 * where its host dies
 */
export const endpointBreakerActor = defineActor(endpointBreaker, {
  state: State,
  initial: { failures: 0, reported: [] },
  // The state is in memory only. After a restart, the endpoint must fail the same number of times again, which does
  // no harm.
  durable: false,

  handlers: {
    admit(before, { probe: id }, { now }) {
      const state = atPresent(before, now);
      const { open } = state;
      if (open === undefined) return { state, reply: { isOpen: false as const } };
      const busyUntil = open.probe === undefined ? 0 : open.probe.at + BREAKER_PROBE_MS_MAX;
      const until = Math.max(open.until, open.probe?.id === id ? 0 : busyUntil);
      if (now < until) return { state, reply: { isOpen: true as const, until } };
      const probe = { id, at: now };
      return { state: { ...state, open: { ...open, probe } }, reply: { isOpen: false as const } };
    },

    report(state, { probe: id, isSuccess }, { now }) {
      if (state.reported.includes(id)) return { state, reply: {} };
      if (isSuccess) {
        const isAtRest = state.failures === 0 && state.open === undefined;
        return { state: isAtRest ? state : { failures: 0, reported: [] }, reply: {} };
      }
      const reported = [id, ...state.reported].slice(0, BREAKER_REPORTS_KEPT);
      const failures = state.failures + 1;
      const { open } = state;
      if (open?.probe?.id === id) {
        const forMs = Math.min(2 * open.forMs, BREAKER_OPEN_MS_MAX);
        return { state: { failures, reported, open: { until: now + forMs, forMs } }, reply: {} };
      }
      // If the breaker is open already, the failure changes nothing but the count: its request may have begun before.
      if (open !== undefined || failures < BREAKER_FAILURES_MAX) {
        return { state: { ...state, failures, reported }, reply: {} };
      }
      const opened = { until: now + BREAKER_OPEN_MS, forMs: BREAKER_OPEN_MS };
      return { state: { failures, reported, open: opened }, reply: {} };
    },
  },
});

/** Limits the times to those that could be set now, because the clock may have been set back. */
function atPresent(state: DeepReadonly<State>, now: number): DeepReadonly<State> {
  const { open } = state;
  if (open === undefined) return state;
  const { until, forMs, probe } = open;
  if (until <= now + forMs && (probe?.at ?? 0) <= now) return state;
  const limited = { until: Math.min(until, now + forMs), forMs };
  const probed = probe && { probe: { ...probe, at: Math.min(probe.at, now) } };
  return { ...state, open: { ...limited, ...probed } };
}
