/** Ends an answer whose request was not read to its end, so that its client can read the answer. */
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Limits the bytes of a refused body that the gateway reads and discards. A client sends them before it reads the
 * response. The limit is several times the body limit of any route.
 */
export const UNREAD_BODY_BYTES_MAX = 64 * 1024 * 1024;
const UNREAD_BODY_MS_MAX = 5_000;

/**
 * Sends the whole `body`, continues to read the request for a while, and then closes the connection. If it closed the
 * connection immediately, the operating system would reset it. A client that is still sending, such as Node's fetch,
 * would then see a broken connection instead of the answer.
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

/**
 * Discards the rest of the request. Resolves when the request ends, exceeds UNREAD_BODY_BYTES_MAX, or takes longer
 * than UNREAD_BODY_MS_MAX.
 */
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
