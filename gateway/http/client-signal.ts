/** Tells when a client has left before its answer was complete. */
import type { ServerResponse } from "node:http";
import { ActorError } from "../../schemas/errors.ts";

/** Returns a signal that aborts with the refusal `cancelled` when the client leaves. */
export function clientSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const leave = () => gone.abort(new ActorError("cancelled", "The client has left"));
  if (response.destroyed) leave();
  response.once("close", () => {
    if (!response.writableFinished) leave();
  });
  return gone.signal;
}
