/** What calls and deliveries were answered, in the same record as their effect: one that comes again is answered from here. */
import { deserialize, serialize } from "node:v8";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import {
  AGENT_REPLIES_BYTES_MAX,
  AGENT_REPLIES_MAX,
  APP_ANSWER_BYTES_MAX,
} from "../../schemas/app-limits.ts";
import type { ProcessError, TurnResult } from "../../schemas/app-process.ts";
import type { AgentDatabase } from "./agent-database.ts";

export type Outcome = { result: TurnResult } | { error: ProcessError };

/** Smaller ones are not worth it. */
const PACKED_BYTES_MIN = 512;

export class Replies {
  readonly #database: AgentDatabase;
  #bytes: number;
  #count: number;

  constructor(database: AgentDatabase) {
    this.#database = database;
    const [kept] = database.own(
      "SELECT COUNT(*) AS count, COALESCE(SUM(LENGTH(result)), 0) AS bytes FROM _trunkline_replies",
    );
    this.#count = Number(kept?.count);
    this.#bytes = Number(kept?.bytes);
  }

  get(id: string): Outcome | undefined {
    const [row] = this.#database.own("SELECT result FROM _trunkline_replies WHERE id = ?", id);
    return row === undefined ? undefined : unpack(row.result as Uint8Array);
  }

  put(id: string, outcome: Outcome): void {
    const packed = pack(outcome);
    this.#database.own(
      "INSERT OR REPLACE INTO _trunkline_replies (id, result) VALUES (?, ?)",
      id,
      packed,
    );
    this.#count += 1;
    this.#bytes += packed.length;
    // The newest is never let go: its caller may be asking for it just now.
    while (
      this.#count > AGENT_REPLIES_MAX ||
      (this.#bytes > AGENT_REPLIES_BYTES_MAX && this.#count > 1)
    ) {
      const [oldest] = this.#database.own(
        `DELETE FROM _trunkline_replies WHERE position = (SELECT MIN(position) FROM _trunkline_replies)
        RETURNING LENGTH(result) AS bytes`,
      );
      if (oldest === undefined) break;
      this.#count -= 1;
      this.#bytes -= Number(oldest.bytes);
    }
  }
}

/** The first byte says whether the rest is compressed. */
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
