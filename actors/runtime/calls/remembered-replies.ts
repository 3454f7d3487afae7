/**
 * The replies an actor keeps so that a call sent twice has its effect once. Kept by client: each numbers its calls
 * and says which of them it still waits for, so nothing is forgotten that can come again, and nothing kept that cannot
 * (the scheme of RIFL, SOSP 2015).
 */
import { z } from "zod";
import { belowSettled, type CallId } from "../../../schemas/call-id.ts";
import type { ActorError } from "../../../schemas/errors.ts";
import {
  EFFECTLESS_CLIENTS_MAX,
  REPLIES_BYTES_MAX,
  REPLIES_KEPT_MS,
  REPLIES_PER_CLIENT_MAX,
} from "../../../schemas/limits.ts";
import { type Answer, busy } from "../shards/incoming.ts";

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

/** What a call was answered that had no effect. */
type Effectless = { reply: string } | { refusal: ActorError };

export class RememberedReplies {
  readonly #clients = new Map<string, ClientReplies>();
  /** Of all kept replies. */
  #bytes = 0;
  /**
   * Answers of calls without effect, in memory alone. A second copy of such a call may run long after its caller was
   * answered, and then have one: a host that stood still has both copies in its buffer.
   */
  readonly #effectless = new Map<string, { settled: number; answers: Map<number, Effectless> }>();

  constructor(stored: StoredReplies = {}) {
    for (const [client, { settled, lastAt, replies }] of Object.entries(stored)) {
      const texts = Object.entries(replies).map(
        ([number, reply]) => [Number(number), JSON.stringify(reply)] as const,
      );
      this.#clients.set(client, { settled, lastAt, replies: new Map(texts) });
      for (const [, text] of texts) this.#bytes += Buffer.byteLength(text);
    }
  }

  /** What the call was answered, if it ran before; `settled` if it is an echo nobody waits for any more. */
  find(id: CallId): Effectless | "settled" | undefined {
    const known = this.#clients.get(id.client);
    const effectless = this.#effectless.get(id.client);
    if (id.number < Math.max(known?.settled ?? 0, effectless?.settled ?? 0)) return "settled";
    const reply = known?.replies.get(id.number);
    return reply === undefined ? effectless?.answers.get(id.number) : { reply };
  }

  /** The call was answered and changed nothing: another copy of it is answered alike, for as long as this actor is in memory. */
  rememberEffectless(id: CallId, answer: Effectless): void {
    let known = this.#effectless.get(id.client);
    if (!known) {
      if (this.#effectless.size >= EFFECTLESS_CLIENTS_MAX) this.#effectless.clear();
      known = { settled: 0, answers: new Map() };
      this.#effectless.set(id.client, known);
    }
    known.settled = Math.max(known.settled, id.settled);
    forgetBelow(known.answers, known.settled);
    if (known.answers.size < REPLIES_PER_CLIENT_MAX) known.answers.set(id.number, answer);
  }

  /** True when the client leaves more calls unsettled than are kept for it, or all of them together more bytes. */
  isFull(id: CallId): boolean {
    const known = this.#clients.get(id.client);
    const full = () =>
      this.#bytes >= REPLIES_BYTES_MAX || (known?.replies.size ?? 0) >= REPLIES_PER_CLIENT_MAX;
    if (known && full()) this.#settle(known, id.settled);
    return full();
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
    this.#bytes += Buffer.byteLength(reply);
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
    for (const reply of forgetBelow(known.replies, settled))
      this.#bytes -= Buffer.byteLength(reply);
  }

  // A client that is gone settles nothing more; by then its last call is past every deadline.
  #forgetClientsGoneBefore(time: number): void {
    for (const [client, { lastAt, replies }] of this.#clients) {
      if (lastAt >= time) continue;
      this.#clients.delete(client);
      for (const reply of replies.values()) this.#bytes -= Buffer.byteLength(reply);
    }
  }
}

/** What a call is answered that ran before, or that may not run. */
export function earlierAnswer(
  replies: RememberedReplies,
  id: CallId | undefined,
  address: string,
): Answer | undefined {
  if (!id) return undefined;
  const earlier = replies.find(id);
  if (earlier === "settled") return { dropped: true };
  if (earlier) return earlier;
  return replies.isFull(id)
    ? busy(address, "too many of this client's calls are unsettled")
    : undefined;
}

function forgetBelow<T>(answers: Map<number, T>, settled: number): T[] {
  return belowSettled(answers, settled).map(([number, answer]) => {
    answers.delete(number);
    return answer;
  });
}
