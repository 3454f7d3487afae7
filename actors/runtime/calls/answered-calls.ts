/**
 * The calls that one key of a hosted kind has answered. A client sends a call again when it takes long, so a copy may
 * arrive just after the answer was sent. A copy must not run, because a call may have effects that no record holds.
 */
import { belowSettled, type CallId } from "../../../schemas/call-id.ts";
import { isPassing } from "../../../schemas/errors.ts";
import { EFFECTLESS_CLIENTS_MAX } from "../../../schemas/limits.ts";
import type { Answer } from "../shards/incoming.ts";

/**
 * Limits the characters of the answers that one key keeps. Past the limit, the oldest answers are dropped. A copy of a
 * call without its answer is handled again.
 */
export const ANSWERS_KEPT_CHARS_MAX = 8 * 1024;
/** The memory of a kept answer besides its text, in characters. */
const EACH_CHARS = 100;

/** One client of the key. The client no longer waits for its calls below `settled`. */
interface Client {
  settled: number;
  answers: Map<number, Kept>;
}

interface Kept {
  client: Client;
  number: number;
  answer: Answer;
  chars: number;
}

export class AnsweredCalls {
  readonly #clients = new Map<string, Client>();
  /** The kept answers to all clients, the oldest first. */
  readonly #kept = new Set<Kept>();
  #chars = 0;

  /**
   * Returns the answer to a copy of an answered call; `dropped` if the client has settled the call; undefined if the
   * call must run.
   */
  find(id: CallId | undefined): Answer | undefined {
    if (!id) return undefined;
    const client = this.#clientOf(id);
    if (id.number < client.settled) return { dropped: true };
    client.settled = Math.max(client.settled, id.settled);
    for (const [, kept] of belowSettled(client.answers, client.settled)) this.#drop(kept);
    return client.answers.get(id.number)?.answer;
  }

  /**
   * Keeps an answer until the client settles the call. Does not keep a temporary refusal: the client sends the call
   * again so that it runs.
   */
  keep(id: CallId | undefined, answer: Answer): void {
    if (!id || ("refusal" in answer && isPassing(answer.refusal))) return;
    const client = this.#clientOf(id);
    const chars = EACH_CHARS + textOf(answer).length;
    if (id.number < client.settled || chars > ANSWERS_KEPT_CHARS_MAX) return;
    const kept = { client, number: id.number, answer, chars };
    client.answers.set(id.number, kept);
    this.#kept.add(kept);
    this.#chars += chars;
    for (const oldest of this.#kept) {
      if (this.#chars <= ANSWERS_KEPT_CHARS_MAX) break;
      this.#drop(oldest);
    }
  }

  #clientOf({ client: name }: CallId): Client {
    const known = this.#clients.get(name);
    if (known) return known;
    if (this.#clients.size >= EFFECTLESS_CLIENTS_MAX) {
      this.#clients.clear();
      this.#kept.clear();
      this.#chars = 0;
    }
    const client: Client = { settled: 0, answers: new Map() };
    this.#clients.set(name, client);
    return client;
  }

  #drop(kept: Kept): void {
    kept.client.answers.delete(kept.number);
    this.#kept.delete(kept);
    this.#chars -= kept.chars;
  }
}

function textOf(answer: Answer): string {
  if ("reply" in answer) return answer.reply;
  return "refusal" in answer ? answer.refusal.message + JSON.stringify(answer.refusal.details) : "";
}
