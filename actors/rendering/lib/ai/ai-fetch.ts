/**
 * Implements `fetch` for the AI library, with bounded responses and no redirects. For addresses that users choose, it
 * also uses the egress guard.
 */
import { type EgressAgents, egressFetch } from "../../../egress/egress-fetch.ts";

/** Maximum bytes of a model's response, including the JSON around the answer. */
export const JSON_ANSWER_BYTES_MAX = 1_000_000;

export type Fetch = typeof globalThis.fetch;

/**
 * Returns a `fetch` for providers that a request names. A redirect could send the API key to another host, so the
 * redirect response is returned instead of followed.
 */
export function guardedFetch(agents: EgressAgents): Fetch {
  return async (input, init) => {
    const answer = await egressFetch(String(input), {
      agents,
      signal: init?.signal ?? new AbortController().signal,
      method: init?.method ?? "GET",
      headers: Object.fromEntries(new Headers(init?.headers)),
      ...(typeof init?.body === "string" ? { body: init.body } : {}),
      redirectsMax: 0,
      bytesMax: JSON_ANSWER_BYTES_MAX,
    });
    const chunks: Buffer[] = [];
    for await (const chunk of answer.body) chunks.push(chunk);
    return new Response(Buffer.concat(chunks), {
      status: answer.status,
      headers: withoutCoding(answer.headers),
    });
  };
}

/** A `fetch` for the operator's endpoint. That endpoint may have any address, also an internal one. */
export const operatorsFetch: Fetch = async (input, init) => {
  const answer = await fetch(input, { ...init, redirect: "error" });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop by this error closes the connection.
    if (bytes > JSON_ANSWER_BYTES_MAX) throw new AnswerTooLarge();
    chunks.push(chunk);
  }
  return new Response(Buffer.concat(chunks), {
    status: answer.status,
    headers: withoutCoding(answer.headers),
  });
};

export class AnswerTooLarge extends Error {
  constructor() {
    super(`the answer is larger than ${JSON_ANSWER_BYTES_MAX} bytes`);
  }
}

/** The body is decoded already. */
function withoutCoding(headers: Headers): Headers {
  const rest = new Headers(headers);
  rest.delete("content-encoding");
  rest.delete("content-length");
  return rest;
}
