/**
 * A two-way link between two processes for frames of any size. Frames arrive in order, the reader limits the pace,
 * and if any message is lost, the whole link ends. Each message on the bus contains a numbered piece of one frame.
 * The receiver responds to the last piece of a frame after it has processed the frame. So the sender knows how many
 * bytes are unprocessed, and notices a lost message or a dead receiver.
 */
import type { Bus, BusRequest } from "../../../runtime/bus/bus.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";

/** Bytes of one piece: half the size limit of a message, so that other messages can be sent between the pieces. */
export const LINK_PIECE_BYTES = 512 * 1024;
/** Maximum bytes that are sent but not yet processed by the receiver. */
const LINK_WINDOW_BYTES = 4 * 1024 * 1024;
/** Maximum messages that are sent but not yet processed by the receiver. */
const LINK_WINDOW_MESSAGES = 256;
/** If the receiver processes nothing for this time, it is dead, or too slow for the frames it gets. */
const LINK_TAKE_MS = 30_000;
/** Interval after which a silent link checks whether the other side is alive. */
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
  /** Processes one frame. The next frame is delivered when the promise has resolved. */
  take(frame: Buffer): void | Promise<void>;
  /** Called once, when no more frames will arrive. `by` names the side that ended the link. */
  ended(how: { by: "us" | "other" | "fault"; reason: string }): void;
  /** Defaults to LINK_PING_MS and LINK_TAKE_MS. */
  pingMs?: number;
  takeMs?: number;
}

export class FrameLink {
  readonly #options: FrameLinkOptions;
  readonly #subscription: { unsubscribe(): void };
  readonly #over = new AbortController();
  /** Pieces that wait until the limits of unprocessed bytes and messages allow sending them. */
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

  /** Bytes that the receiver has not processed yet, including those that are not sent yet. */
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

  /** Resolves when the receiver has processed all but at most `bytesMax` bytes, or when the link has ended. */
  async drained(bytesMax: number): Promise<void> {
    while (this.unsentBytes > bytesMax && !this.#over.signal.aborted) await this.#room.promise;
  }

  /** Ends the link after all frames that were sent before, and sends a reason to the other side. */
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
      // Respond only after the previous frame was processed. Otherwise a fast sender would fill the memory with
      // complete frames.
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

  /**
   * Pings the other side while the link is silent. If its process was killed, its subscription is gone, so the
   * request fails immediately.
   */
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
