/** Tells when a client has left before its answer was complete. */
import type { ServerResponse } from "node:http";
import { ActorError } from "../../schemas/errors.ts";

/** One for each request, so that its parts do not all listen. */
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
