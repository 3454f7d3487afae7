/** The operations of the bus that DevTools sessions need. The gateway role implements them on its connection. */

export interface DevtoolsBus {
  /**
   * `nobody`: no process subscribes to that subject. `silence`: no response arrived in time, but a process may have
   * received the request.
   */
  ask(
    subject: string,
    payload: string,
    timeoutMs: number,
  ): Promise<{ answer: string } | "nobody" | "silence">;
  openLink(options: LinkOptions): Link;
}

interface LinkOptions {
  receiveOn: string;
  sendTo: string;
  frameBytesMax: number;
  take(frame: Buffer): void | Promise<void>;
  ended(how: { by: "us" | "other" | "fault"; reason: string }): void;
}

export interface Link {
  readonly unsentBytes: number;
  send(frame: Uint8Array): void;
  drained(bytesMax: number): Promise<void>;
  end(reason: string): void;
}
