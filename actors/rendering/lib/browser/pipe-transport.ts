/**
 * Transfers DevTools messages over two pipes; a NUL ends each message. It opens no port to which others could
 * connect.
 */
import type { Readable, Writable } from "node:stream";
import type { ConnectionTransport } from "puppeteer-core";
import { CDP_MESSAGE_BYTES_MAX } from "../../../../schemas/limits.ts";

/** Maximum messages of the browser that are read before other work of this process may run: about 2 ms. */
export const CDP_MESSAGES_AT_ONCE = 100;

export class PipeTransport implements ConnectionTransport {
  // Set by puppeteer.
  onmessage?: (message: string) => void;
  onclose?: () => void;

  readonly #toBrowser: Writable;
  readonly #ended: () => void;
  readonly #fromBrowser: Readable;
  readonly #admits: (message: Buffer) => boolean;
  readonly #messageBytesMax: number;
  #parts: Buffer[] = [];
  /** The beginning of a message that is too long, as text. */
  #beginning = "";
  #bytes = 0;
  #delivered = 0;
  #closed = false;
  #paused = false;

  /**
   * `ended` is called before puppeteer is notified of the end, so that the cause is known when puppeteer's promises
   * reject.
   */
  constructor(options: {
    toBrowser: Writable;
    fromBrowser: Readable;
    ended: () => void;
    /** Returns whether a message is needed. By default all messages are. */
    admits?: (message: Buffer) => boolean;
    messageBytesMax?: number;
  }) {
    this.#toBrowser = options.toBrowser;
    this.#fromBrowser = options.fromBrowser;
    this.#admits = options.admits ?? (() => true);
    this.#ended = options.ended;
    this.#messageBytesMax = options.messageBytesMax ?? CDP_MESSAGE_BYTES_MAX;
    options.fromBrowser.on("data", (chunk: Buffer) => this.#read(chunk));
    // If either pipe ends for any reason, the browser counts as ended.
    for (const pipe of [options.fromBrowser, options.toBrowser]) {
      pipe.on("error", () => this.close());
      pipe.on("close", () => this.close());
    }
  }

  send(message: string): void {
    if (this.#closed) return;
    if (UNREAD.test(message)) {
      setImmediate(() => {
        if (!this.#closed) this.onmessage?.(emptyReply(message));
      });
      return;
    }
    this.#gather();
    this.#toBrowser.write(`${message}\0`);
  }

  /** Sends the messages of one moment with one system call, which costs as much as a message. */
  #gather(): void {
    if (this.#toBrowser.writableCorked > 0) return;
    this.#toBrowser.cork();
    process.nextTick(() => this.#toBrowser.uncork());
  }

  /** Resolves when the pipe to the browser can take more messages, or when it has ended. */
  async drained(): Promise<void> {
    while (!this.#closed && this.#toBrowser.writableNeedDrain) {
      await new Promise<void>((resolve) => {
        this.#toBrowser.once("drain", resolve);
        this.#toBrowser.once("close", resolve);
      });
    }
  }

  /** Stops reading messages of the browser. The browser waits as soon as its pipe is full. */
  pause(): void {
    this.#paused = true;
    this.#fromBrowser.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#fromBrowser.resume();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#parts = [];
    this.#ended();
    this.onclose?.();
  }

  #read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(0); end >= 0; end = chunk.indexOf(0, start)) {
      this.#keep(chunk.subarray(start, end));
      this.#deliver();
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    if (this.#delivered >= CDP_MESSAGES_AT_ONCE) this.#giveWay();
  }

  /**
   * Interrupts reading, so that other work of this process can run. A pipe that never becomes empty would otherwise
   * be read without end.
   */
  #giveWay(): void {
    this.#delivered = 0;
    this.#fromBrowser.pause();
    setImmediate(() => {
      if (!this.#paused) this.#fromBrowser.resume();
    });
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes <= this.#messageBytesMax) {
      if (part.length > 0) this.#parts.push(part);
      return;
    }
    // For a message that is too long, only its length and its beginning are kept until it ends.
    if (this.#beginning === "") this.#beginning = beginningOf([...this.#parts, part]);
    this.#parts = [];
  }

  #deliver(): void {
    const [only, ...others] = this.#parts;
    const whole = this.#bytes <= this.#messageBytesMax && !this.#closed;
    if (whole && only !== undefined) {
      const message = others.length === 0 ? only : Buffer.concat(this.#parts);
      if (this.#admits(message)) {
        this.#delivered += 1;
        this.onmessage?.(message.toString("utf8"));
      }
    }
    if (this.#beginning !== "" && !this.#closed) this.#refuse(this.#beginning);
    this.#parts = [];
    this.#beginning = "";
    this.#bytes = 0;
  }

  /** Answers the call with an error, so that the caller does not wait without end. */
  #refuse(beginning: string): void {
    const id = ANSWER.exec(beginning)?.[1];
    if (id === undefined) return;
    const message = `its answer is larger than ${this.#messageBytesMax} bytes`;
    this.onmessage?.(JSON.stringify({ id: Number(id), error: { code: TOO_LARGE, message } }));
  }
}

/** Matches the id of a reply. The browser writes it first. */
const ANSWER = /^\{"id":(\d+),/;
/** The protocol's code for server errors. */
const TOO_LARGE = -32_000;

function beginningOf(parts: readonly Buffer[]): string {
  return Buffer.concat(parts.map((part) => part.subarray(0, 64)))
    .subarray(0, 64)
    .toString("latin1");
}

/**
 * Matches commands by which puppeteer enables, for every page, events that no code here reads. They are not sent but
 * answered here, with the same reply.
 */
const UNREAD = /^\{"method":"(?:Log|Performance|WebMCP)\.enable"/;

/** Returns Chromium's reply to a command without a result. */
function emptyReply(command: string): string {
  const { id, sessionId } = JSON.parse(command) as { id: number; sessionId?: string };
  return JSON.stringify({ id, result: {}, sessionId });
}
