/** One WebSocket's way out: what its reader cannot take yet waits, bounded, and of states only the latest. */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { SOCKET_WAITING_BYTES_MAX } from "../../../schemas/apps/limits.ts";

export interface OutgoingFrame {
  /** As `frameBytes` makes them. */
  bytes: Buffer;
  /** A later one takes its place. */
  isState: boolean;
}

/** Try again later (RFC 6455's registry): its reader was too slow. */
const TOO_SLOW = 1013;

export class SocketReader {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  #waiting: OutgoingFrame[] = [];
  #waitingBytes = 0;

  /**
   * `stream` is what the socket writes to. Frames go there as they are: between those of the socket, which writes
   * each of its own whole and at once, since it compresses nothing.
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
    // So much is held that the stream says when it is written.
    if (this.#waiting.length === 0) this.#stream.once("drain", () => this.#flush());
    if (frame.isState) this.#dropState();
    this.#waiting.push(frame);
    this.#waitingBytes += frame.bytes.length;
    // As much again as the connection itself holds.
    if (this.#waitingBytes > SOCKET_WAITING_BYTES_MAX) this.#giveUp();
  }

  /** What is sent until `release` goes out in one piece. */
  gather(): void {
    this.#stream.cork();
  }

  release(): void {
    this.#stream.uncork();
  }

  /** After what waits. */
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
    // One that reads on reads it behind what its connection holds; one that reads nothing is cut off soon after.
    this.#socket.close(TOO_SLOW, "Too slow: as much waits as may");
  }
}
