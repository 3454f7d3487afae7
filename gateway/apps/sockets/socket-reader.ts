/**
 * The outgoing side of one WebSocket. Frames that its client cannot receive yet are buffered, up to a limit. Of state
 * frames, only the latest is kept.
 */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { SOCKET_WAITING_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import type { UnreadClient } from "../../http/unread-bytes.ts";

interface OutgoingFrame {
  /** The bytes that `frameBytes` makes. All sockets that get the frame share them. */
  bytes: Buffer;
  /** True for a frame with the whole state. A later state frame replaces it while it is buffered. */
  isState: boolean;
}

/** A frame that waits for the stream. `release` ends its count. */
interface WaitingFrame extends OutgoingFrame {
  release: () => void;
}

/** A frame in the stream, which has written it when it has written `end` bytes of frames in all. */
interface WrittenFrame {
  bytes: Buffer;
  end: number;
  /** Absent while the stream is corked, because most frames leave when it is not any more. */
  release?: () => void;
}

/** Close code "try again later" (RFC 6455's registry): the client read too slowly. */
const TOO_SLOW = 1013;
/** Memory of one buffered frame in addition to its bytes, about: the objects of the stream and of this file. */
const FRAME_BYTES_MORE = 512;

export class SocketReader {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #unread: UnreadClient;
  #waiting: WaitingFrame[] = [];
  #waitingBytes = 0;
  /** Frames that the stream has not passed on yet, in order. */
  #written: WrittenFrame[] = [];
  #writtenBytes = 0;
  #isGathering = false;

  /**
   * `stream` is the stream that the socket writes to. Encoded frames are written to it directly, between the socket's
   * own frames. This is safe because the socket uses no compression, so it writes each of its frames whole and
   * immediately. `unread` counts what the client has not read.
   */
  constructor(socket: WebSocket, stream: Duplex, unread: UnreadClient) {
    this.#socket = socket;
    this.#stream = stream;
    this.#unread = unread;
  }

  /** Whether frames wait until the client reads. */
  get hasUnread(): boolean {
    return this.#stream.writableLength > 0 || this.#waiting.length > 0;
  }

  send(frame: OutgoingFrame): void {
    const { readyState, OPEN } = this.#socket;
    if (readyState !== OPEN) return;
    if (this.#waiting.length === 0 && this.#stream.writableLength <= SOCKET_WAITING_BYTES_MAX) {
      this.#write(frame.bytes);
      return;
    }
    // The stream is full, so it will emit "drain".
    if (this.#waiting.length === 0) this.#stream.once("drain", () => this.#flush());
    if (frame.isState) this.#dropState();
    const waiting: WaitingFrame = { ...frame, release: () => {} };
    this.#waiting.push(waiting);
    this.#waitingBytes += frame.bytes.length;
    waiting.release = this.#unread.hold(FRAME_BYTES_MORE, frame.bytes);
    // Frames wait here up to the size that the connection itself holds.
    if (this.#waitingBytes > SOCKET_WAITING_BYTES_MAX) this.#giveUp();
  }

  /** Buffers everything that is sent until `release`, so that it is sent in one piece. */
  gather(): void {
    this.#isGathering = true;
    this.#stream.cork();
  }

  release(): void {
    this.#isGathering = false;
    this.#stream.uncork();
    this.#countWritten();
  }

  /** Closes the socket after the buffered frames. */
  close(code: number, reason: string): void {
    for (const { bytes, release } of this.#waiting.splice(0)) {
      this.#write(bytes);
      release();
    }
    this.#waitingBytes = 0;
    this.#socket.close(code, reason);
  }

  /** Drops all frames, because the socket is closed. */
  drop(): void {
    this.#dropWaiting();
    for (const { release } of this.#written.splice(0)) release?.();
  }

  #write(bytes: Buffer): void {
    this.#writtenBytes += bytes.length;
    this.#stream.write(bytes, this.#passedOn);
    // Nearly always the system takes the frame at once.
    if (this.#stream.writableLength === 0) return;
    this.#written.push({ bytes, end: this.#writtenBytes });
    if (!this.#isGathering) this.#countWritten();
  }

  #passedOn = (): void => {
    if (this.#written.length > 0) this.#settle();
  };

  /** Counts the frames that the client does not read yet. The newest may not be counted, and are last. */
  #countWritten(): void {
    this.#settle();
    for (let at = this.#written.length - 1; at >= 0; at -= 1) {
      const frame = this.#written[at];
      // The client may have been cut off by the count of a frame, and then has no frames.
      if (!frame || frame.release) return;
      frame.release = this.#unread.hold(FRAME_BYTES_MORE, frame.bytes);
    }
  }

  /** Removes frames that the stream has passed on. Its own length also has the socket's pings, which are small. */
  #settle(): void {
    const { writableLength } = this.#stream;
    const passed = writableLength === 0 ? this.#writtenBytes : this.#writtenBytes - writableLength;
    const past = this.#written.findIndex(({ end }) => end > passed);
    const settled = this.#written.splice(0, past < 0 ? this.#written.length : past);
    for (const { release } of settled) release?.();
  }

  #flush(): void {
    while (
      this.#waiting.length > 0 &&
      this.#stream.writableLength <= SOCKET_WAITING_BYTES_MAX / 2
    ) {
      const frame = this.#waiting.shift();
      if (!frame) return;
      this.#waitingBytes -= frame.bytes.length;
      this.#write(frame.bytes);
      frame.release();
    }
    if (this.#waiting.length > 0) this.#stream.once("drain", () => this.#flush());
  }

  #dropState(): void {
    const at = this.#waiting.findIndex(({ isState }) => isState);
    const [old] = at < 0 ? [] : this.#waiting.splice(at, 1);
    this.#waitingBytes -= old?.bytes.length ?? 0;
    old?.release();
  }

  #giveUp(): void {
    this.#dropWaiting();
    // A client that still reads gets this close frame after the bytes that its connection has buffered. A client that
    // reads nothing is disconnected soon after.
    this.#socket.close(TOO_SLOW, "Too slow: the client does not read its messages in time");
  }

  #dropWaiting(): void {
    for (const { release } of this.#waiting.splice(0)) release();
    this.#waitingBytes = 0;
  }
}
