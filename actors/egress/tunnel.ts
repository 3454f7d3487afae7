/** Carries bytes both ways between two sockets, with backpressure and half-close, until both sides have ended. */
import type { Socket } from "node:net";

export interface Tunnel {
  client: Socket;
  /** Opened with `allowHalfOpen`, as is every socket of Node's HTTP server. */
  upstream: Socket;
  idleMs: number;
  /** Told whenever bytes moved on the upstream; it destroys both sides if they were too many. */
  moved: (upstream: Socket) => void;
}

export function carry({ client, upstream, idleMs, moved }: Tunnel): void {
  pump(client, upstream);
  pump(upstream, client);
  // Bytes either way are read from or written to the upstream, so its idle time is the tunnel's.
  client.setTimeout(0);
  upstream.setTimeout(idleMs, () => upstream.destroy());

  function pump(source: Socket, target: Socket) {
    source.on("data", (chunk) => {
      moved(upstream);
      if (target.destroyed) return;
      if (!target.write(chunk)) source.pause();
      moved(upstream);
    });
    target.on("drain", () => source.resume());
    if (source.readableEnded) target.end();
    else source.once("end", () => target.end());
    // The side that fails tells the other by closing; "close" follows every "error".
    source.on("error", () => {});
    source.once("close", (failed) => {
      moved(upstream);
      if (failed) target.destroy();
      else drain(target);
    });
  }

  /** What the target has not read yet still belongs to it, unless it never reads. */
  function drain(target: Socket) {
    target.setTimeout(idleMs, () => target.destroy());
    target.destroySoon();
  }
}
