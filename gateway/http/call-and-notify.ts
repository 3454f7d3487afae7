/** Makes calls that revoke something. They return after every gateway that caches the revoked item was notified. */
import type { z } from "zod";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type {
  Calls,
  Contract,
  DeepReadonly,
  LiveSchema,
  Messages,
  Reply,
} from "../../schemas/contract.ts";
import { ActorError, isPassing } from "../../schemas/errors.ts";
import type { tellAgain } from "../../schemas/tell-again.ts";

type Telling = { tellAgain: typeof tellAgain };

/**
 * Makes the call, then makes the actor notify the gateways. It does so after a refusal too, because an earlier call
 * may have had its effect without a notification. Rejects if no actor host answers.
 */
export async function callAndNotify<M extends Messages & Telling, N extends Calls<M>>(
  actors: ActorClient,
  contract: Contract<M, LiveSchema>,
  key: string,
  message: N,
  input: DeepReadonly<z.input<M[N]["input"]>>,
): Promise<Reply<M[N]>> {
  const notifyAgain = () => actors.call<Telling, "tellAgain">(contract, key, "tellAgain", {});
  const reply = await actors.call(contract, key, message, input).catch(async (error: unknown) => {
    if (error instanceof ActorError && !isPassing(error)) await notifyAgain();
    throw error;
  });
  await notifyAgain();
  return reply;
}
