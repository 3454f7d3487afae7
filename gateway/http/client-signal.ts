/** Returns an abort signal for a client that leaves before its answer is complete. */
import type { ServerResponse } from "node:http";
import { ActorError } from "../../schemas/errors.ts";

/** One shared signal for each request, so that not every part of the request adds its own listener. */
const signals = new WeakMap<ServerResponse, AbortSignal>();

/** Returns a signal that aborts with the refusal `cancelled` when the client leaves. */
export function clientSignal(response: ServerResponse): AbortSignal {
  const known = signals.get(response);
  if (known) return known;
  const gone = new AbortController();
  const leave = () => gone.abort(new ActorError("cancelled", "Cannot answer: the client left"));
  if (response.destroyed) leave();
  response.once("close", () => {
    if (!response.writableFinished) leave();
  });
  signals.set(response, gone.signal);
  return gone.signal;
}
