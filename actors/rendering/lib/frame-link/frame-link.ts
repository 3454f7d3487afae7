/**
 * A two-way link between two processes for frames of any size: in order, bounded by the reader's pace, and broken as a
 * whole where anything of it is lost.
 *
 * Each message on the bus holds a piece of one frame and its number, and is answered once its frame was taken. So the
 * sender knows how much is under way, and notices a lost message or a dead reader.
 */
import type { Bus, BusRequest } from "../../../runtime/bus/bus.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";

/** Bytes of one piece: half of what a message may have, so that other traffic gets between them. */
export const LINK_PIECE_BYTES = 512 * 1024;
/** Bytes that are sent and not yet taken. */
const LINK_WINDOW_BYTES = 4 * 1024 * 1024;
/** Messages that are sent and not yet taken. */
const LINK_WINDOW_MESSAGES = 256;
/** A reader that takes nothing for this long is gone, or too slow for the frames it gets. */
const LINK_TAKE_MS = 30_000;
/** How often a silent link asks whether the other side is there. */
const LINK_PING_MS = 3_000;
const HEADER_BYTES = 7;

/** The kind of a message, stored in its first byte. */
const KINDS = { more: 0, last: 1, ping: 2, end: 3 } as const;

export interface FrameLinkOptions {
  bus: Pick<Bus, "request" | "connection">;
  clock: Clock;
  receiveOn: string;
  sendTo: string;
  /** The largest frame that the other side may send. */
  frameBytesMax: number;
  /** Takes one frame; the next comes when this has resolved. */
  take(frame: Buffer): void | Promise<void>;
  /** Called once, when nothing more will come. `by` is the side that ended it. */
  ended(how: { by: "us" | "other" | "fault"; reason: string }): void;
  /** Defaults to LINK_PING_MS and LINK_TAKE_MS. */
  pingMs?: number;
  takeMs?: number;
}

export class FrameLink {
  readonly #options: FrameLinkOptions;
  readonly #subscription: { unsubscribe(): void };
  readonly #over = new AbortController();
  /** Pieces that wait for room in the window. */
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #underWay = 0;
  #underWayBytes = 0;
  #nextOut = 0;
  #nextIn = 0;
  #parts: Buffer[] = [];
  #partBytes = 0;
  #taking: Promise<void> = Promise.resolve();
  #room = Promise.withResolvers<void>();
  #lastSentAt = 0;

  constructor(options: FrameLinkOptions) {
    this.#options = options;
    this.#subscription = options.bus.connection.subscribe(options.receiveOn, {
      callback: (error, message) => {
        if (error) this.#finish("fault", "the bus refuses the link");
        else this.#receive(message);
      },
    });
    void this.#ping();
  }

  /** Bytes that the other side has not taken yet. */
  get unsentBytes(): number {
    return this.#waitingBytes + this.#underWayBytes;
  }

  /** Sends one frame. Frames of a link that has ended are dropped. */
  send(frame: Uint8Array): void {
    if (this.#over.signal.aborted) return;
    let at = 0;
    do {
      const end = Math.min(at + LINK_PIECE_BYTES, frame.length);
      this.#queue(end < frame.length ? KINDS.more : KINDS.last, frame.subarray(at, end));
      at = end;
    } while (at < frame.length);
    this.#sendAll();
  }

  /** Resolves when at most this many bytes are unsent, or the link has ended. */
  async drained(bytesMax: number): Promise<void> {
    while (this.unsentBytes > bytesMax && !this.#over.signal.aborted) await this.#room.promise;
  }

  /** Ends the link after the frames that were sent before, with a reason for the other side. */
  end(reason: string): void {
    if (this.#over.signal.aborted) return;
    this.#queue(KINDS.end, Buffer.from(reason));
    this.#sendAll();
    this.#finish("us", reason);
  }

  #queue(kind: number, data: Uint8Array): void {
    const message = Buffer.allocUnsafe(HEADER_BYTES + data.length);
    message[0] = kind;
    message.writeUIntBE(this.#nextOut, 1, HEADER_BYTES - 1);
    message.set(data, HEADER_BYTES);
    this.#nextOut += 1;
    this.#waiting.push(message);
    this.#waitingBytes += message.length;
  }

  #sendAll(): void {
    for (;;) {
      const [next] = this.#waiting;
      const isFull =
        this.#underWay >= LINK_WINDOW_MESSAGES || this.#underWayBytes >= LINK_WINDOW_BYTES;
      if (!next || isFull) return;
      this.#waiting.shift();
      this.#waitingBytes -= next.length;
      void this.#sendOne(next);
    }
  }

  async #sendOne(message: Buffer): Promise<void> {
    const { bus, sendTo, takeMs = LINK_TAKE_MS, clock } = this.#options;
    this.#underWay += 1;
    this.#underWayBytes += message.length;
    this.#lastSentAt = clock.monotonic();
    try {
      await bus.request(sendTo, message, { timeoutMs: takeMs });
    } catch {
      this.#waiting.length = 0;
      this.#waitingBytes = 0;
      this.#finish("fault", "the other side of the link does not take frames");
    } finally {
      this.#underWay -= 1;
      this.#underWayBytes -= message.length;
      this.#notify();
    }
    this.#sendAll();
  }

  #notify(): void {
    this.#room.resolve();
    this.#room = Promise.withResolvers();
  }

  #receive(message: BusRequest): void {
    if (this.#over.signal.aborted) return;
    const data = Buffer.from(message.data.buffer, message.data.byteOffset, message.data.length);
    const kind = data[0];
    const number = data.length < HEADER_BYTES ? -1 : data.readUIntBE(1, HEADER_BYTES - 1);
    if (number !== this.#nextIn) {
      this.#finish("fault", "a message of the link was lost");
      return;
    }
    this.#nextIn += 1;
    const piece = data.subarray(HEADER_BYTES);
    if (kind === KINDS.end) {
      message.respond();
      this.#taking = this.#taking.then(() => this.#finish("other", piece.toString()));
      return;
    }
    if (kind === KINDS.ping) {
      message.respond();
      return;
    }
    this.#partBytes += piece.length;
    if (this.#partBytes > this.#options.frameBytesMax) {
      this.#finish("fault", `a frame is larger than ${this.#options.frameBytesMax} bytes`);
      return;
    }
    this.#parts.push(piece);
    if (kind === KINDS.more) {
      // Not before the frame ahead was taken: otherwise a fast sender would fill the memory with whole frames.
      void this.#taking.then(() => message.respond());
      return;
    }
    const frame = this.#parts.length === 1 ? piece : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partBytes = 0;
    this.#taking = this.#taking.then(() => this.#take(frame, message));
  }

  async #take(frame: Buffer, message: BusRequest): Promise<void> {
    if (this.#over.signal.aborted) return;
    try {
      await this.#options.take(frame);
      message.respond();
    } catch {
      this.#finish("fault", "a frame was not taken");
    }
  }

  /** A process that was killed leaves its subject, so a request to it fails at once. */
  async #ping(): Promise<void> {
    const { clock, pingMs = LINK_PING_MS } = this.#options;
    for (;;) {
      await clock.wait(pingMs, this.#over.signal);
      if (this.#over.signal.aborted) return;
      const isSilent = clock.monotonic() - this.#lastSentAt >= pingMs;
      if (!isSilent || this.#underWay > 0) continue;
      this.#queue(KINDS.ping, Buffer.alloc(0));
      this.#sendAll();
    }
  }

  #finish(by: "us" | "other" | "fault", reason: string): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(OVER);
    this.#subscription.unsubscribe();
    if (by !== "us") {
      this.#waiting.length = 0;
      this.#waitingBytes = 0;
    }
    this.#parts = [];
    this.#notify();
    this.#options.ended({ by, reason });
  }
}
