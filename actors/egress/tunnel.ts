/** Carries bytes both ways between two sockets, with backpressure and half-close, until both sides have ended. */
import type { Socket } from "node:net";
import type { TunnelHold } from "./tunnel-holds.ts";

/** Fewer are no answer: an alert that ends a TLS connection has 31 at most, the shortest head of HTTP more. */
const EGRESS_ANSWER_BYTES_MIN = 32;

export interface Tunnel {
  client: Socket;
  /** Opened with `allowHalfOpen`, as is every socket of Node's HTTP server. */
  upstream: Socket;
  idleMs: number;
  /** Called whenever bytes moved on the upstream connection. It destroys both sides if there were too many. */
  moved: (upstream: Socket) => void;
  /** Holders that must agree before the client's bytes are forwarded. */
  holds: () => readonly TunnelHold[];
}

export function carry({ client, upstream, idleMs, moved, holds }: Tunnel): void {
  /** When the client last sent bytes to the upstream; undefined when it will send no more. */
  let readBefore: number | undefined;
  pump(client, upstream);
  pump(upstream, client);
  // Bytes either way are read from or written to the upstream, so its idle time is the tunnel's.
  client.setTimeout(0);
  upstream.setTimeout(idleMs, () => upstream.destroy());

  function pump(source: Socket, target: Socket) {
    source.on("data", (chunk) => {
      moved(upstream);
      if (source === client) checkHolds();
      if (target.destroyed) return;
      if (!target.write(chunk)) source.pause();
      moved(upstream);
    });
    target.on("drain", () => source.resume());
    const end = () => {
      if (source === upstream) tellUnanswered();
      target.end();
    };
    if (source.readableEnded) end();
    else source.once("end", end);
    // The side that fails tells the other by closing; "close" follows every "error".
    source.on("error", () => {});
    source.once("close", (failed) => {
      moved(upstream);
      if (source === upstream) tellUnanswered();
      if (failed) target.destroy();
      else drain(target);
    });
  }

  function checkHolds() {
    readBefore = upstream.bytesRead;
    if (holds().every((hold) => hold.mayPass())) return;
    client.destroy();
    upstream.destroy();
  }

  /** Before the client knows that it was closed. */
  function tellUnanswered() {
    const isAnswered =
      readBefore === undefined || upstream.bytesRead - readBefore >= EGRESS_ANSWER_BYTES_MIN;
    readBefore = undefined;
    if (!isAnswered) for (const hold of holds()) hold.onUnanswered();
  }

  /** The target may still read the remaining bytes, unless it never reads. */
  function drain(target: Socket) {
    target.setTimeout(idleMs, () => target.destroy());
    target.destroySoon();
  }
}
