/** Counts the bytes that one task transfers over its sockets, and reports when the task exceeds its limit. */
import type { Socket } from "node:net";

export class ByteMeter {
  received = 0;
  sent = 0;
  #bytesMax: number;
  /** Bytes of each socket that are counted already. A kept-alive socket serves many requests and tasks. */
  readonly #counted = new WeakMap<Socket, { received: number; sent: number }>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds the bytes that the socket transferred after its last count. */
  count(socket: Socket): void {
    const before = this.#counted.get(socket) ?? { received: 0, sent: 0 };
    const now = { received: socket.bytesRead, sent: socket.bytesWritten };
    this.received += now.received - before.received;
    this.sent += now.sent - before.sent;
    this.#counted.set(socket, now);
  }

  get exceeded(): boolean {
    return this.received + this.sent > this.#bytesMax;
  }

  begin(bytesMax: number): void {
    this.received = 0;
    this.sent = 0;
    this.#bytesMax = bytesMax;
  }
}
