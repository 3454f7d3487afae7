/** Tells an agent's inbox what became of deliveries: each try is answered, whatever became of its turn. */
import { agentInbox, type DeliveryOutcome } from "../../../schemas/apps/agent-inbox.ts";
import { DELIVERY_ERROR_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";

/** Time to report results to an inbox by call. After that they are sent by mail, and a shutdown continues. */
const DELIVERY_SETTLED_MS_MAX = 1_000;

/**
 * The first of `outcomes` is that of the try; the others are of those that came with it. Resolves with whether there
 * is a next one to be asked for: only where `takesNext`.
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
    // Mail would be one more write that the disk has to take, and one more message that its reader has to remove.
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
    // If the call had its effect, the mail has none.
    await actors.send(agentInbox, key, "delivered", told);
    return false;
  }
}
