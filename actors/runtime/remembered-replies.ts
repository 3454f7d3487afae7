/**
 * The replies an actor keeps so that a call sent twice has its effect once. Kept by client: each numbers its calls
 * and says which of them it still waits for, so nothing is forgotten that can come again, and nothing kept that cannot
 * (the scheme of RIFL, SOSP 2015).
 */
import { z } from "zod";
import { REPLIES_KEPT_MS, REPLIES_PER_CLIENT_MAX } from "../../schemas/limits.ts";

/** Of one client: calls below `settled` are never sent again; a reply's JSON text by the call's number. */
interface ClientReplies {
  settled: number;
  lastAt: number;
  replies: Map<number, string>;
}

export const StoredReplies = z.record(
  z.string(),
  z.object({ settled: z.number(), lastAt: z.number(), replies: z.record(z.string(), z.unknown()) }),
);
export type StoredReplies = z.infer<typeof StoredReplies>;

/** Which call of which client; `settled` as the client sent it along. */
export interface CallId {
  client: string;
  number: number;
  settled: number;
}

export class RememberedReplies {
  readonly #clients = new Map<string, ClientReplies>();

  constructor(stored: StoredReplies = {}) {
    for (const [client, { settled, lastAt, replies }] of Object.entries(stored)) {
      const texts = Object.entries(replies).map(
        ([number, reply]) => [Number(number), JSON.stringify(reply)] as const,
      );
      this.#clients.set(client, { settled, lastAt, replies: new Map(texts) });
    }
  }

  /** The reply's JSON text if the call had its effect; `settled` if it is an echo nobody waits for any more. */
  find(id: CallId): { reply: string } | "settled" | undefined {
    const known = this.#clients.get(id.client);
    if (!known) return undefined;
    if (id.number < known.settled) return "settled";
    const reply = known.replies.get(id.number);
    return reply === undefined ? undefined : { reply };
  }

  /** True when the client leaves more calls unsettled than are kept for it. */
  isFull(id: CallId): boolean {
    const known = this.#clients.get(id.client);
    if (!known || known.replies.size < REPLIES_PER_CLIENT_MAX) return false;
    this.#settle(known, id.settled);
    return known.replies.size >= REPLIES_PER_CLIENT_MAX;
  }

  remember(id: CallId, reply: string, now: number): void {
    let known = this.#clients.get(id.client);
    if (!known) {
      this.#forgetClientsGoneBefore(now - REPLIES_KEPT_MS);
      known = { settled: 0, lastAt: now, replies: new Map() };
      this.#clients.set(id.client, known);
    }
    known.lastAt = Math.max(known.lastAt, now);
    this.#settle(known, id.settled);
    known.replies.set(id.number, reply);
  }

  /** JSON text of StoredReplies; the replies are JSON text already and are not built twice. */
  toText(): string {
    const clients: string[] = [];
    for (const [client, { settled, lastAt, replies }] of this.#clients) {
      const texts: string[] = [];
      for (const [number, reply] of replies) texts.push(`"${number}":${reply}`);
      clients.push(
        `${JSON.stringify(client)}:{"settled":${settled},"lastAt":${lastAt},"replies":{${texts.join(",")}}}`,
      );
    }
    return `{${clients.join(",")}}`;
  }

  #settle(known: ClientReplies, settled: number): void {
    if (settled <= known.settled) return;
    known.settled = settled;
    // Numbers grow, so the settled ones come first; the few behind one that overtook them go with it.
    for (const number of known.replies.keys()) {
      if (number >= settled) break;
      known.replies.delete(number);
    }
  }

  // A client that is gone settles nothing more; by then its last call is past every deadline.
  #forgetClientsGoneBefore(time: number): void {
    for (const [client, { lastAt }] of this.#clients) {
      if (lastAt < time) this.#clients.delete(client);
    }
  }
}
