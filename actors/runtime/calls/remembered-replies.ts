/**
 * The replies that an actor keeps so that a call that is sent twice has its effect once. Each client numbers its
 * calls and states for which calls it still waits. So an actor keeps each reply as long as its call can arrive again
 * (RIFL, SOSP 2015).
 */
import { z } from "zod";
import { belowSettled, type CallId } from "../../../schemas/call-id.ts";
import type { ActorError } from "../../../schemas/errors.ts";
import { EFFECTLESS_CLIENTS_MAX, REPLIES_KEPT_MS } from "../../../schemas/limits.ts";
import { type Answer, busy } from "../shards/incoming.ts";

/** At this many bytes of kept replies, an actor refuses calls as busy until clients have settled some. */
export const REPLIES_BYTES_MAX = 180_000;
/** The part of it that one client may have, so that a client that never calls again stops no other client. */
export const CLIENT_BYTES_MAX = REPLIES_BYTES_MAX / 2;
/** Limits the unsettled replies that an actor keeps for one client. */
export const REPLIES_PER_CLIENT_MAX = 4_096;

/** The replies to one client, as JSON texts by the number of the call. Calls below `settled` are never sent again. */
interface ClientReplies {
  settled: number;
  lastAt: number;
  /** The bytes of `replies`. */
  bytes: number;
  replies: Map<number, string>;
}

export const StoredReplies = z.record(
  z.string(),
  z.object({ settled: z.number(), lastAt: z.number(), replies: z.record(z.string(), z.unknown()) }),
);
export type StoredReplies = z.infer<typeof StoredReplies>;

/** The answer to a call without effect. */
type Effectless = { reply: string } | { refusal: ActorError };

export class RememberedReplies {
  readonly #clients = new Map<string, ClientReplies>();
  /** The bytes of all kept replies. */
  #bytes = 0;
  /**
   * Answers to calls without effect, kept in memory only. A host that was suspended may have two copies of such a
   * call in its buffer. Without the kept answer, the second copy could run long after the caller was answered, and
   * could have an effect.
   */
  readonly #effectless = new Map<string, { settled: number; answers: Map<number, Effectless> }>();

  constructor(stored: StoredReplies = {}) {
    for (const [client, { settled, lastAt, replies }] of Object.entries(stored)) {
      const texts = Object.entries(replies).map(
        ([number, reply]) => [Number(number), JSON.stringify(reply)] as const,
      );
      const bytes = texts.reduce((sum, [, text]) => sum + Buffer.byteLength(text), 0);
      this.#clients.set(client, { settled, lastAt, bytes, replies: new Map(texts) });
      this.#bytes += bytes;
    }
  }

  /** Returns the answer if the call ran before; `settled` for a late copy whose answer nobody needs. */
  find(id: CallId): Effectless | "settled" | undefined {
    const known = this.#clients.get(id.client);
    const effectless = this.#effectless.get(id.client);
    if (id.number < Math.max(known?.settled ?? 0, effectless?.settled ?? 0)) return "settled";
    const reply = known?.replies.get(id.number);
    return reply === undefined ? effectless?.answers.get(id.number) : { reply };
  }

  /**
   * Remembers the answer to a call that changed nothing. While the actor is in memory, copies of the call get the
   * same answer.
   */
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

  /**
   * True when the client has REPLIES_PER_CLIENT_MAX unsettled replies or CLIENT_BYTES_MAX bytes of them, or when the
   * replies to all clients have REPLIES_BYTES_MAX bytes. Forgets silent clients first, because a full actor remembers
   * no reply that would make it do so.
   */
  isFull(id: CallId, now: number): boolean {
    const full = () => {
      const { bytes = 0, replies } = this.#clients.get(id.client) ?? {};
      const count = replies?.size ?? 0;
      const isClientFull = bytes >= CLIENT_BYTES_MAX || count >= REPLIES_PER_CLIENT_MAX;
      return isClientFull || this.#bytes >= REPLIES_BYTES_MAX;
    };
    if (!full()) return false;
    const known = this.#clients.get(id.client);
    if (known) this.#settle(known, id.settled);
    this.#forgetClientsGoneBefore(now - REPLIES_KEPT_MS);
    return full();
  }

  remember(id: CallId, reply: string, now: number): void {
    let known = this.#clients.get(id.client);
    if (!known) {
      this.#forgetClientsGoneBefore(now - REPLIES_KEPT_MS);
      known = { settled: 0, lastAt: now, bytes: 0, replies: new Map() };
      this.#clients.set(id.client, known);
    }
    known.lastAt = Math.max(known.lastAt, now);
    this.#settle(known, id.settled);
    known.replies.set(id.number, reply);
    const bytes = Buffer.byteLength(reply);
    known.bytes += bytes;
    this.#bytes += bytes;
  }

  /** Returns the JSON text of StoredReplies. The replies are JSON text already and are inserted unchanged. */
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
    for (const reply of forgetBelow(known.replies, settled)) {
      const bytes = Buffer.byteLength(reply);
      known.bytes -= bytes;
      this.#bytes -= bytes;
    }
  }

  // Removes clients that were silent since `time`, because they settle no more replies. All calls of such a client
  // are past their deadlines.
  #forgetClientsGoneBefore(time: number): void {
    for (const [client, { lastAt, bytes }] of this.#clients) {
      if (lastAt >= time) continue;
      this.#clients.delete(client);
      this.#bytes -= bytes;
    }
  }
}

/** Returns the answer to a call that ran before or must not run; undefined if the call must run. */
export function earlierAnswer(
  replies: RememberedReplies,
  id: CallId | undefined,
  address: string,
  now: number,
): Answer | undefined {
  if (!id) return undefined;
  const earlier = replies.find(id);
  if (earlier === "settled") return { dropped: true };
  if (earlier) return earlier;
  return replies.isFull(id, now)
    ? busy(address, "too many of this client's calls are unsettled")
    : undefined;
}

function forgetBelow<T>(answers: Map<number, T>, settled: number): T[] {
  return belowSettled(answers, settled).map(([number, answer]) => {
    answers.delete(number);
    return answer;
  });
}
