/** Carries bytes both ways between two sockets, with backpressure and half-close, until both sides have ended. */
import type { Socket } from "node:net";
import type { TunnelHold } from "./tunnel-holds.ts";

/**
 * Fewer bytes than this are not counted as a response: an alert that ends a TLS connection has at most 31 bytes, and
 * the shortest head of an HTTP response has more.
 */
const EGRESS_ANSWER_BYTES_MIN = 32;

export interface Tunnel {
  client: Socket;
  /** This socket must be opened with `allowHalfOpen`, as every socket of Node's HTTP server is. */
  upstream: Socket;
  idleMs: number;
  /**
   * Called whenever bytes were transferred on the upstream connection. The function destroys both sides if the task
   * exceeded its limit.
   */
  moved: (upstream: Socket) => void;
  /** Holders that must agree before the client's bytes are forwarded. */
  holds: () => readonly TunnelHold[];
}

export function carry({ client, upstream, idleMs, moved, holds }: Tunnel): void {
  /**
   * Bytes that the upstream had sent when the client last sent bytes to it. Undefined after the upstream has ended.
   */
  let readBefore: number | undefined;
  pump(client, upstream);
  pump(upstream, client);
  // Bytes in both directions pass the upstream socket, so its idle timeout is enough for the whole tunnel.
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
    // When one side fails, the other side is closed too. "close" follows every "error".
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

  /** Notifies the holders of an unanswered request, before the client learns that the tunnel was closed. */
  function tellUnanswered() {
    const isAnswered =
      readBefore === undefined || upstream.bytesRead - readBefore >= EGRESS_ANSWER_BYTES_MIN;
    readBefore = undefined;
    if (!isAnswered) for (const hold of holds()) hold.onUnanswered();
  }

  /** Closes the target after it has read the remaining bytes, or after the idle timeout if it does not read. */
  function drain(target: Socket) {
    target.setTimeout(idleMs, () => target.destroy());
    target.destroySoon();
  }
}
