/** Forwards calls that operators make without knowing the shard of an actor: `nats req actor.<kind>.<key…>`. */
import { callSubject, OPERATOR_CALLS } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";

/** One host forwards each call. The owner of the shard replies to the operator. */
export function forwardOperatorCalls(bus: Bus, signal: AbortSignal): void {
  const subscription = bus.connection.subscribe(`${OPERATOR_CALLS}.>`, {
    queue: OPERATOR_CALLS,
    callback(error, { subject, data, headers, reply }) {
      if (error || bus.isAway) return;
      const address = subject.slice(OPERATOR_CALLS.length + 1);
      bus.connection.publish(callSubject(bus.shardOf(address), address), data, {
        ...(headers && { headers }),
        ...(reply !== undefined && { reply }),
      });
    },
  });
  signal.addEventListener("abort", () => subscription.unsubscribe());
}
