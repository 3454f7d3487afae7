/** Posts to a program that a test may kill during the request. */
import { request } from "node:http";

interface PostOptions {
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
}

/** Sends one request on a connection of its own. Resolves to undefined if it failed or was cut off. */
export function postOnce(
  url: string,
  { headers, body, timeoutMs }: PostOptions,
): Promise<{ status: number; text: string } | undefined> {
  const { promise, resolve } = Promise.withResolvers<
    { status: number; text: string } | undefined
  >();
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { method: "POST", headers, signal, agent: false };
  const sent = request(url, options, async (response) => {
    try {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode ?? 0, text });
    } catch {
      resolve(undefined); // It was cut off in the middle.
    }
  });
  sent.on("error", () => resolve(undefined));
  sent.end(body);
  return promise;
}
