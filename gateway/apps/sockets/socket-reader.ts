/**
 * The outgoing side of one WebSocket. Frames that its client cannot receive yet are buffered, up to a limit. Of state
 * frames, only the latest is kept.
 */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { SOCKET_WAITING_BYTES_MAX } from "../../../schemas/apps/limits.ts";

interface OutgoingFrame {
  /** The bytes that `frameBytes` makes. */
  bytes: Buffer;
  /** True for a frame with the whole state. A later state frame replaces it while it is buffered. */
  isState: boolean;
}

/** Close code "try again later" (RFC 6455's registry): the client read too slowly. */
const TOO_SLOW = 1013;

export class SocketReader {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  #waiting: OutgoingFrame[] = [];
  #waitingBytes = 0;

  /**
   * `stream` is the stream that the socket writes to. Encoded frames are written to it directly, between the socket's
   * own frames. This is safe because the socket uses no compression, so it writes each of its frames whole and
   * immediately.
   */
  constructor(socket: WebSocket, stream: Duplex) {
    this.#socket = socket;
    this.#stream = stream;
  }

  send(frame: OutgoingFrame): void {
    const { readyState, OPEN } = this.#socket;
    if (readyState !== OPEN) return;
    if (this.#waiting.length === 0 && this.#stream.writableLength <= SOCKET_WAITING_BYTES_MAX) {
      this.#stream.write(frame.bytes);
      return;
    }
    // The stream is full, so it will emit "drain".
    if (this.#waiting.length === 0) this.#stream.once("drain", () => this.#flush());
    if (frame.isState) this.#dropState();
    this.#waiting.push(frame);
    this.#waitingBytes += frame.bytes.length;
    // Frames wait here up to the size that the connection itself holds.
    if (this.#waitingBytes > SOCKET_WAITING_BYTES_MAX) this.#giveUp();
  }

  /** Buffers everything that is sent until `release`, so that it is sent in one piece. */
  gather(): void {
    this.#stream.cork();
  }

  release(): void {
    this.#stream.uncork();
  }

  /** Closes the socket after the buffered frames. */
  close(code: number, reason: string): void {
    for (const { bytes } of this.#waiting.splice(0)) this.#stream.write(bytes);
    this.#socket.close(code, reason);
  }

  #flush(): void {
    while (
      this.#waiting.length > 0 &&
      this.#stream.writableLength <= SOCKET_WAITING_BYTES_MAX / 2
    ) {
      const frame = this.#waiting.shift();
      if (!frame) return;
      this.#waitingBytes -= frame.bytes.length;
      this.#stream.write(frame.bytes);
    }
    if (this.#waiting.length > 0) this.#stream.once("drain", () => this.#flush());
  }

  #dropState(): void {
    const at = this.#waiting.findIndex(({ isState }) => isState);
    const [old] = at < 0 ? [] : this.#waiting.splice(at, 1);
    this.#waitingBytes -= old?.bytes.length ?? 0;
  }

  #giveUp(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
    // A client that still reads gets this close frame after the bytes that its connection has buffered. A client that
    // reads nothing is disconnected soon after.
    this.#socket.close(TOO_SLOW, "Too slow: the client does not read its messages in time");
  }
}
