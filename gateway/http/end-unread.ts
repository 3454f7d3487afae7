/** Ends an answer whose request was not read to its end, so that its client can read the answer. */
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Bytes of a refused body that are discarded: a client sends them before it reads the response. A body of several
 * times the limit of any route fits.
 */
export const UNREAD_BODY_BYTES_MAX = 64 * 1024 * 1024;
const UNREAD_BODY_MS_MAX = 5_000;

/**
 * Sends `body` whole, reads on for a while, and then closes the connection. Closed at once, the system would reset it,
 * and a client that still sends, as Node's fetch does, finds a broken connection in place of the answer.
 */
export async function endUnread(
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  response.setHeader("Connection", "close");
  response.setHeader("Content-Length", Buffer.byteLength(body));
  response.write(body);
  await skimmed(request);
  response.end();
}

/** Resolves when the request has ended or exceeds UNREAD_BODY_BYTES_MAX. */
async function skimmed(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const skim = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > UNREAD_BODY_BYTES_MAX) resolve();
  };
  const late = setTimeout(resolve, UNREAD_BODY_MS_MAX);
  for (const event of ["end", "close", "error"]) request.once(event, () => resolve());
  request.on("data", skim).resume();
  await promise;
  clearTimeout(late);
  request.off("data", skim).pause();
}
