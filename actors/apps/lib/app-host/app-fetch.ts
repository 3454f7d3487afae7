/**
 * `fetch` of apps. Every request and redirect passes the egress guard, and the whole response is buffered in memory.
 */

import type { Operation, OperationResult } from "../../../../schemas/apps/app-process.ts";
import { APP_ANSWER_BYTES_MAX } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { EGRESS_REDIRECTS_MAX } from "../../../../schemas/limits.ts";
import { EgressAgents, egressFetch, REDIRECTS } from "../../../egress/egress-fetch.ts";
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";

/** Limit of the open connections of all apps' fetches on one host, and of the idle connections that are kept. */
export const APP_FETCH_CONNECTIONS_MAX = 512;
/**
 * One account's share of these connections. The rest is for other accounts, and the fewer connections an account has,
 * the more of the rest it may take. Without a share, a few apps of one account whose fetches get no answer could stop
 * the fetches of all accounts.
 */
const APP_FETCH_ACCOUNT_SHARE = 0.75;

/** Returns the limit for the connections of one account's fetches. */
export function appFetchesOfAccountMax(max = APP_FETCH_CONNECTIONS_MAX): number {
  return Math.floor(max * APP_FETCH_ACCOUNT_SHARE);
}

/** Headers that app code must not set, because they belong to the connection or to the platform. */
const OURS = new Set([
  "connection",
  "content-length",
  "host",
  "keep-alive",
  "te",
  "transfer-encoding",
  "upgrade",
]);
/** Response headers that are removed: the body is already decoded, so its encoding and length differ. */
const ABOUT_ENCODING = new Set(["content-encoding", "content-length", "transfer-encoding"]);

interface Asker {
  /** The account of the app. The connections and the lookups of names count for it. */
  account: string;
  signal: AbortSignal;
  /** Called with the size of each chunk of the body. */
  comes(bytes: number): void;
}

export class AppFetch {
  readonly #agents: EgressAgents;
  readonly #places = new FairSemaphore({
    places: APP_FETCH_CONNECTIONS_MAX,
    perOwner: appFetchesOfAccountMax(),
    keptFree: APP_FETCH_CONNECTIONS_MAX - appFetchesOfAccountMax(),
  });

  constructor({ guard }: { guard: EgressGuard }) {
    this.#agents = new EgressAgents({ guard, idleMax: APP_FETCH_CONNECTIONS_MAX });
  }

  /**
   * Fetches a response for an app. Calls `comes` with the size of each chunk of the body. `comes` counts the bytes that
   * the app holds, and throws when they are too many.
   */
  async fetch(
    operation: Extract<Operation, { type: "fetch" }>,
    asker: Asker,
  ): Promise<OperationResult> {
    const release = await this.#places.take(asker.account, asker.signal);
    try {
      return await this.#fetch(operation, asker);
    } finally {
      release();
    }
  }

  async #fetch(
    { request, redirect }: Extract<Operation, { type: "fetch" }>,
    { account, signal, comes }: Asker,
  ): Promise<OperationResult> {
    const { method, url, headers, body } = request;
    const sent = new Headers();
    for (const [name, value] of headers)
      if (!OURS.has(name.toLowerCase())) sent.append(name, value);
    const answer = await egressFetch(url, {
      agents: this.#agents,
      lookupOwner: account,
      signal,
      method,
      headers: Object.fromEntries(sent),
      ...(body !== undefined && { body }),
      bytesMax: APP_ANSWER_BYTES_MAX,
      redirectsMax: redirect === "follow" ? EGRESS_REDIRECTS_MAX : 0,
    });
    if (redirect === "error" && REDIRECTS.has(answer.status)) {
      answer.body.destroy();
      const text = "Cannot fetch: the answer is a redirect, and none was wanted";
      throw new ActorError("too_many_redirects", text);
    }
    const pieces: Uint8Array[] = [];
    for await (const piece of answer.body) {
      comes(piece.length);
      pieces.push(piece);
    }
    return {
      type: "answer",
      url: answer.url,
      answer: {
        status: answer.status,
        headers: [...answer.headers].filter(([name]) => !ABOUT_ENCODING.has(name)),
        body: Buffer.concat(pieces),
      },
    };
  }

  close(): void {
    this.#agents.close();
  }
}
