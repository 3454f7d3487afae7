/**
 * Answers that are sent before their bodies are complete. The rest of a body is read only on request, so that an app
 * writes no faster than the client reads.
 */

import type { StreamPart } from "../../../schemas/apps/app-process.ts";
import { APP_STREAM_PART_BYTES_MAX, APP_STREAMS_MAX } from "../../../schemas/apps/limits.ts";
import { capturedContext } from "../package/current-agent.ts";
import { AgentRefusal } from "../package/refusal.ts";
import { setImmediate } from "./native-timers.ts";
import { type BodyRead, bytesOf, heardLater, refuseBody, type UnreadBody } from "./read-body.ts";

/** The agent or entry that writes the answer. */
export interface StreamMaker {
  /** Called for each requested part, and one time with the end, unless the reader has stopped before. */
  say(stream: number, part: StreamPart): void;
  failed(error: unknown): void;
}

interface Made extends UnreadBody {
  maker: StreamMaker;
  /** Reads the next chunk, in the context of the code that writes the answer. */
  read(): Promise<BodyRead>;
  /** Bytes that were read but have not been sent in a part. */
  left: Uint8Array;
  isPulled: boolean;
  ended(): void;
}

const NONE = new Uint8Array();
const NOT_YET = Symbol("not yet");

export class AnswerStreams {
  readonly #streams = new Map<number, Made>();
  readonly #sayGone: (stream: number) => void;
  #last = 0;

  /** `sayGone` is called when a requested stream does not exist here. */
  constructor(sayGone: (stream: number) => void) {
    this.#sayGone = sayGone;
  }

  /** Opens a stream. `ended` resolves when nothing more is read from it. Throws `busy` past APP_STREAMS_MAX. */
  open(unread: UnreadBody, maker: StreamMaker): { stream: number; ended: Promise<void> } {
    if (this.#streams.size >= APP_STREAMS_MAX) {
      const text = `Cannot answer: ${APP_STREAMS_MAX} answers of the app are still being made`;
      throw refuseBody(unread, new AgentRefusal("busy", text));
    }
    const { reader, next } = unread;
    const inContext = capturedContext();
    const ended = Promise.withResolvers<void>();
    const read = () => inContext(() => reader.read());
    this.#last += 1;
    this.#streams.set(this.#last, {
      ...{ reader, next, maker, read, left: NONE, isPulled: false, ended: ended.resolve },
    });
    return { stream: this.#last, ended: ended.promise };
  }

  /** Reads and sends the next part. A second request during the first is ignored, so each part is sent one time. */
  async pull(stream: number): Promise<void> {
    const made = this.#streams.get(stream);
    if (made === undefined) return this.#sayGone(stream);
    if (made.isPulled) return;
    made.isPulled = true;
    try {
      const bytes = await readPart(made);
      if (!this.#streams.has(stream)) return;
      made.isPulled = false;
      if (bytes !== undefined) return made.maker.say(stream, { bytes });
      this.#forget(stream, made);
      made.maker.say(stream, { isEnd: true });
    } catch (error) {
      if (!this.#streams.has(stream)) return;
      this.#forget(stream, made);
      made.reader.cancel(error).catch(() => undefined);
      made.maker.say(stream, { failed: "the app's code failed" });
      made.maker.failed(error);
    }
  }

  /** Ends a stream that nobody reads any more, and notifies its writer. */
  leave(stream: number): void {
    const made = this.#streams.get(stream);
    if (made === undefined) return;
    this.#forget(stream, made);
    made.reader.cancel(new Error("Nobody reads the answer any more")).catch(() => undefined);
  }

  leaveThoseOf(maker: StreamMaker): void {
    for (const [stream, made] of this.#streams) if (made.maker === maker) this.leave(stream);
  }

  #forget(stream: number, made: Made): void {
    this.#streams.delete(stream);
    made.ended();
  }
}

/** Resolves with all bytes that are ready, waiting only for the first bytes. Resolves with undefined at the end. */
async function readPart(made: Made): Promise<Uint8Array | undefined> {
  const parts = [made.left];
  let bytes = made.left.length;
  if (bytes >= APP_STREAM_PART_BYTES_MAX) return takePart(made, made.left);
  while (bytes < APP_STREAM_PART_BYTES_MAX) {
    const read = await readMore(made, bytes > 0);
    if (read === undefined) break;
    parts.push(read);
    bytes += read.length;
    made.next = heardLater(made.read());
  }
  return bytes === 0 ? undefined : takePart(made, Buffer.concat(parts, bytes));
}

/**
 * Reads one more chunk; returns undefined at the end. With `isThere`, some bytes have been read already. Then it also
 * returns undefined if the next chunk is not ready or has failed, and the next request gets that chunk.
 */
async function readMore(made: Made, isThere: boolean): Promise<Uint8Array | undefined> {
  try {
    const read = await (isThere ? Promise.race([made.next, notYet()]) : made.next);
    return read === NOT_YET || read.done ? undefined : bytesOf(read.value);
  } catch (error) {
    if (isThere) return undefined;
    throw error;
  }
}

/** Returns one part. The remaining bytes wait for the next request. */
function takePart(made: Made, all: Uint8Array): Uint8Array {
  made.left = all.subarray(APP_STREAM_PART_BYTES_MAX);
  return new Uint8Array(all.subarray(0, APP_STREAM_PART_BYTES_MAX));
}

const notYet = () =>
  new Promise<typeof NOT_YET>((resolve) => {
    setImmediate(resolve, NOT_YET);
  });
