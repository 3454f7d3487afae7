/** One WebSocket's way out: what its reader cannot take yet waits, bounded, and of states only the latest. */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { SOCKET_WAITING_BYTES_MAX } from "../../../schemas/apps/limits.ts";

interface OutgoingFrame {
  /** The bytes that `frameBytes` makes. */
  bytes: Buffer;
  /** A later frame replaces it. */
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
    // The stream is full, so it will emit "drain".
    if (this.#waiting.length === 0) this.#stream.once("drain", () => this.#flush());
    if (frame.isState) this.#dropState();
    this.#waiting.push(frame);
    this.#waitingBytes += frame.bytes.length;
    // Frames wait here up to the size that the connection itself holds.
    if (this.#waitingBytes > SOCKET_WAITING_BYTES_MAX) this.#giveUp();
  }

  /** Gathers everything that is sent until `release`, so that it leaves in one piece. */
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
    // A client that still reads gets this close frame after what its connection holds. One that reads nothing is cut
    // off soon after.
    this.#socket.close(TOO_SLOW, "Too slow: as much waits as may");
  }
}
