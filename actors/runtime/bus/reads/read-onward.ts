/** Reads the messages of a subject from a sequence on, as far as the stream's leader has them. */
import type { Bus } from "../bus.ts";
import { isUnanswered, readDirect } from "./read-direct.ts";

interface StoredText {
  seq: number;
  string(): string;
}

/**
 * Yields the messages in order. Reads many of them at once from any replica. Where that yields nothing, reads one
 * from the leader, because a replica may lag behind; the end is where the leader has no more. Rejects with BusLost if
 * the connection is lost meanwhile.
 */
export async function* readOnward(
  bus: Bus,
  stream: string,
  subject: string,
  from: number,
): AsyncGenerator<StoredText> {
  let next = from;
  for (;;) {
    const found = await readMany(bus, stream, subject, next);
    if (found.length === 0) {
      const message = await bus.readNextOfLeader(stream, subject, next);
      if (!message) return;
      found.push(message);
    }
    for (const message of found) {
      yield message;
      next = message.seq + 1;
    }
  }
}

async function readMany(
  bus: Bus,
  stream: string,
  subject: string,
  from: number,
): Promise<StoredText[]> {
  try {
    const answer = await readDirect(bus, stream, { next_by_subj: subject, seq: from });
    return (answer?.messages ?? []).map(({ headers, string }) => ({
      seq: Number(headers?.get("Nats-Sequence")),
      string,
    }));
  } catch (error) {
    // No replica answers, or the user may not ask it: the caller then reads from the leader.
    if (isUnanswered(error)) return [];
    throw error;
  }
}
