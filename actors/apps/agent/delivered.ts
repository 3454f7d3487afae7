/** Reports the results of deliveries to an agent's inbox: by a call, or by mail if the call fails. */
import { agentInbox, type DeliveryOutcome } from "../../../schemas/apps/agent-inbox.ts";
import { DELIVERY_ERROR_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";

/** Time to report results to an inbox by call. After that they are sent by mail, and a shutdown continues. */
const DELIVERY_SETTLED_MS_MAX = 1_000;

/**
 * Reports outcomes: first the outcome of the attempt, then the outcomes of the events of the same round. Resolves
 * with whether another event waits, and always with false without `takesNext`.
 */
export async function answerDeliveries(
  actors: Pick<ActorClient, "call" | "send">,
  key: string,
  { id, attempt }: { id: string; attempt: number },
  outcomes: readonly DeliveryOutcome[],
  { takesNext = false } = {},
): Promise<boolean> {
  const [first, ...next] = outcomes.map(({ error, ...outcome }) =>
    error === undefined ? outcome : { ...outcome, error: error.slice(0, DELIVERY_ERROR_CHARS_MAX) },
  );
  const told = { id, attempt, ...first, next };
  try {
    // A call is used because mail would cost one more write to disk and one more message to remove.
    const options = { deadlineMs: DELIVERY_SETTLED_MS_MAX };
    const { hasNext } = await actors.call(
      agentInbox,
      key,
      "settle",
      { ...told, takesNext },
      options,
    );
    return hasNext;
  } catch (error) {
    if (!(error instanceof ActorError)) throw error;
    // If the inbox has handled the call after all, this mail changes nothing.
    await actors.send(agentInbox, key, "delivered", told);
    return false;
  }
}
