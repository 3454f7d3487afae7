/** Reads bodies that app code created: completely, or the available bytes within a time limit, and the rest later. */

import { describe } from "../package/describe.ts";
import { AgentRefusal } from "../package/refusal.ts";
import { clearTimeout, setTimeout } from "./native-timers.ts";

export type BodyRead = Awaited<ReturnType<ReadableStreamDefaultReader<unknown>["read"]>>;

/** A body that is still being written. */
export interface UnreadBody {
  reader: ReadableStreamDefaultReader<unknown>;
  /** The read that has already begun. */
  next: Promise<BodyRead>;
}

const LATE = Symbol("late");

export async function readBody(
  from: Request | Response,
  bytesMax: number,
): Promise<Uint8Array | undefined> {
  return (await readBodyWithin(from, bytesMax)).body;
}

/** Reads what arrives `within` this time, or everything without it. Rejects with `body_too_large` past `bytesMax`. */
export async function readBodyWithin(
  from: Request | Response,
  bytesMax: number,
  within?: { ms: number },
): Promise<{ body?: Uint8Array; unread?: UnreadBody }> {
  if (from.body === null) return {};
  const reader = (from.body as ReadableStream<unknown>).getReader();
  // Returns without setting a timer: code that writes the body without a pause would let no timer fire.
  if (within?.ms === 0) return { unread: { reader, next: heardLater(reader.read()) } };
  const parts: Uint8Array[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const late = Promise.withResolvers<typeof LATE>();
  if (within !== undefined) timer = setTimeout(late.resolve, within.ms, LATE);
  try {
    for (;;) {
      const next = heardLater(reader.read());
      const read = await Promise.race([next, late.promise]);
      if (read === LATE) return { body: joined(parts), unread: { reader, next } };
      if (read.done) return { body: joined(parts) };
      const part = bytesOf(read.value);
      bytes += part.length;
      if (bytes > bytesMax) {
        throw new AgentRefusal(
          "body_too_large",
          `Cannot pass on a body: it is larger than ${bytesMax} bytes`,
        );
      }
      parts.push(part);
    }
  } catch (error) {
    // Notifies the writer that nobody reads on.
    reader.cancel(error).catch(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

export function bytesOf(part: unknown): Uint8Array {
  if (part instanceof Uint8Array) return part;
  throw new TypeError(`Cannot read a body: a part is ${describe(part)}, not bytes`);
}

/** Notifies the writer of the body that reading has stopped. Returns the error. */
export function refuseBody({ reader }: UnreadBody, error: AgentRefusal): AgentRefusal {
  reader.cancel(error).catch(() => undefined);
  return error;
}

/** The error when a turn was abandoned or its agent has left this process. */
export const unheard = () => new AgentRefusal("deadline_exceeded", "Nobody waits for the answer");

/** Returns the same promise, but a rejection before it is awaited does not count as unhandled. */
export function heardLater<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

const joined = (parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
