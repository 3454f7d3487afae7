/**
 * The results of calls and deliveries. Each is stored in the same record as the effects of its message. A repeated
 * message is answered from here.
 */
import { deserialize, serialize } from "node:v8";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { ProcessError, TurnResult } from "../../../schemas/apps/app-process.ts";
import { APP_ANSWER_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { belowSettled, type CallId } from "../../../schemas/call-id.ts";
import type { AgentDatabase } from "./agent-database.ts";

/**
 * Limit of the replies in an agent's database, which answer repeated calls without running them again. Replies to
 * settled calls are deleted sooner.
 */
const AGENT_REPLIES_MAX = 1_000;
/**
 * Limit of the bytes of all kept replies, compressed. They are part of the database and count toward its limit. The
 * newest reply is kept at any size.
 */
const AGENT_REPLIES_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Limit of the clients for which an agent remembers which calls are settled. A copy of a call is dropped after its
 * deadline, and no agent has this many clients within that time.
 */
export const AGENT_CLIENTS_MAX = 64;

export type Outcome = { result: TurnResult } | { error: ProcessError };

/** Smaller replies are not compressed. */
const PACKED_BYTES_MIN = 512;

/** The id of an answered message, and its call if the calling client reports which calls are settled. */
export interface AnsweredMessage {
  id: string;
  call?: CallId | undefined;
}

interface Reply {
  position: number;
  bytes: number;
  call: { client: string; number: number } | undefined;
}

/**
 * Replies that no client will request again are deleted together, with one change of the database, when their number
 * or their size reaches a limit below.
 */
const SETTLED_MAX = 16;
const SETTLED_BYTES_MAX = 16 * 1024;

/**
 * Memory holds the ids of the replies, because every turn looks one up. The replies themselves are in the database.
 */
export class Replies {
  readonly #database: AgentDatabase;
  /** Replies by id, oldest first. */
  readonly #replies = new Map<string, Reply>();
  /** The ids of each client's calls, by call number. */
  readonly #ofClients = new Map<string, Map<number, string>>();
  /**
   * For each client, the number below which no reply is kept and no call is run. The client that settled last comes
   * last. Such numbers are needed because a server or host that was suspended may deliver a copy of a call long after
   * its client has received the reply.
   */
  readonly #settled = new Map<string, number>();
  #bytes = 0;
  #last = 0;

  constructor(database: AgentDatabase) {
    this.#database = database;
    const rows = database.own(
      "SELECT position, id, client, number, LENGTH(result) AS bytes FROM _trunkline_answered ORDER BY position",
    );
    for (const { position, id, client, number, bytes } of rows) {
      const call = client === null ? undefined : { client: String(client), number: Number(number) };
      this.#add(String(id), { position: Number(position), bytes: Number(bytes), call });
    }
    const marks = database.own("SELECT client, below FROM _trunkline_settled ORDER BY position");
    for (const { client, below } of marks) this.#settled.set(String(client), Number(below));
  }

  /** Returns true for a copy of a call whose reply was deleted because its client no longer waits for it. */
  isSettled({ client, number }: CallId): boolean {
    return number < (this.#settled.get(client) ?? 0);
  }

  get(id: string): Outcome | undefined {
    const reply = this.#replies.get(id);
    if (reply === undefined) return undefined;
    const sql = "SELECT result FROM _trunkline_answered WHERE position = ?";
    const [row] = this.#database.own(sql, reply.position);
    return row === undefined ? undefined : unpack(row.result as Uint8Array);
  }

  /** Stores the outcome of a message. Call it only one time for each id, except after it threw `storage_full`. */
  put({ id, call }: AnsweredMessage, outcome: Outcome): void {
    const packed = pack(outcome);
    // In a full database, the new reply may need the room of the deleted ones.
    if (call) {
      const settled = this.#settledBy(call);
      if (settled.length > 0) this.#mark(call.client, call.settled);
      this.#remove(settled);
    }
    // Replies past the limits are deleted after the settled ones, so that no needed reply is deleted while settled
    // ones exist.
    const past = this.#pastBounds(packed.length);
    for (const known of past) {
      const removed = this.#replies.get(known)?.call;
      if (removed) this.#mark(removed.client, removed.number + 1);
    }
    this.#remove(past);
    const position = this.#last + 1;
    this.#database.own(
      "INSERT INTO _trunkline_answered VALUES (?, ?, ?, ?, ?)",
      ...[position, id, call?.client ?? null, call?.number ?? null],
      packed,
    );
    this.#add(id, { position, bytes: packed.length, call });
  }

  #mark(client: string, below: number): void {
    const known = this.#settled.get(client) ?? 0;
    this.#settled.delete(client);
    this.#settled.set(client, Math.max(known, below));
    this.#database.own(
      "INSERT OR REPLACE INTO _trunkline_settled (client, below) VALUES (?, ?)",
      ...[client, Math.max(known, below)],
    );
    const [oldest] = this.#settled.keys();
    if (this.#settled.size <= AGENT_CLIENTS_MAX || oldest === undefined) return;
    this.#settled.delete(oldest);
    this.#database.own("DELETE FROM _trunkline_settled WHERE client = ?", oldest);
  }

  /** Returns the replies to calls that the client will not repeat, if there are enough of them to delete. */
  #settledBy({ client, settled }: CallId): string[] {
    const numbers = this.#ofClients.get(client) ?? new Map<number, string>();
    const ids = belowSettled(numbers, settled).map(([, id]) => id);
    const bytes = ids.reduce((sum, id) => sum + (this.#replies.get(id)?.bytes ?? 0), 0);
    return ids.length >= SETTLED_MAX || bytes >= SETTLED_BYTES_MAX ? ids : [];
  }

  /** Returns the oldest replies that are past the limits when a reply of `newBytes` is added. */
  #pastBounds(newBytes: number): string[] {
    const ids: string[] = [];
    let count = this.#replies.size + 1;
    let bytes = this.#bytes + newBytes;
    for (const [id, reply] of this.#replies) {
      if (count <= AGENT_REPLIES_MAX && bytes <= AGENT_REPLIES_BYTES_MAX) break;
      ids.push(id);
      count -= 1;
      bytes -= reply.bytes;
    }
    return ids;
  }

  #add(id: string, reply: Reply): void {
    this.#replies.set(id, reply);
    this.#last = reply.position;
    this.#bytes += reply.bytes;
    if (reply.call === undefined) return;
    const { client, number } = reply.call;
    const numbers = this.#ofClients.get(client) ?? new Map<number, string>();
    this.#ofClients.set(client, numbers.set(number, id));
  }

  #remove(ids: readonly string[]): void {
    if (ids.length === 0) return;
    const positions = ids.map((id) => this.#replies.get(id)?.position);
    this.#database.own(
      "DELETE FROM _trunkline_answered WHERE position IN (SELECT value FROM json_each(?))",
      JSON.stringify(positions),
    );
    for (const id of ids) this.#forget(id);
  }

  #forget(id: string): void {
    const reply = this.#replies.get(id);
    if (reply === undefined) return;
    this.#replies.delete(id);
    this.#bytes -= reply.bytes;
    if (reply.call === undefined) return;
    const { client, number } = reply.call;
    const numbers = this.#ofClients.get(client);
    numbers?.delete(number);
    if (numbers?.size === 0) this.#ofClients.delete(client);
  }
}

/** Serializes an outcome. The first byte states whether the rest is compressed. */
function pack(outcome: Outcome): Uint8Array {
  const plain = serialize(outcome);
  const isPacked = plain.length > PACKED_BYTES_MIN;
  return Buffer.concat([Buffer.of(isPacked ? 1 : 0), isPacked ? zstdCompressSync(plain) : plain]);
}

function unpack(kept: Uint8Array): Outcome {
  const rest = Buffer.from(kept.subarray(1));
  const maxOutputLength = 2 * APP_ANSWER_BYTES_MAX;
  return deserialize(
    kept[0] === 1 ? zstdDecompressSync(rest, { maxOutputLength }) : rest,
  ) as Outcome;
}
