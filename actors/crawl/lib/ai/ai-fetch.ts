/** `fetch` as the AI library wants it: bounded answers, no redirects, and for addresses that users choose the egress guard. */
import { type EgressAgents, egressFetch } from "../../../egress/egress-fetch.ts";

/** Answer of a model with all that is around it: ten times what it may have read. */
export const JSON_ANSWER_BYTES_MAX = 1_000_000;

export type Fetch = typeof globalThis.fetch;

/** For providers that a request names. A redirect would take the key elsewhere, so it is an answer like any other. */
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

/** For the endpoint that the operator configured: it may be anywhere, inside too. */
export const operatorsFetch: Fetch = async (input, init) => {
  const answer = await fetch(input, { ...init, redirect: "error" });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop ends the connection.
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

/** The bytes have been decoded. */
function withoutCoding(headers: Headers): Headers {
  const rest = new Headers(headers);
  rest.delete("content-encoding");
  rest.delete("content-length");
  return rest;
}
