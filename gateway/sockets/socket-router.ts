/** Leads WebSocket upgrades to whoever serves their path. */
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { SOCKET_MESSAGE_BYTES_MAX, SOCKETS_MAX } from "../../schemas/limits.ts";

export interface SocketRoute {
  /** What `accept` needs to know of an address, or undefined when this route does not serve it. */
  match(url: URL): Record<string, string> | undefined;
  /**
   * Serves a socket that is open. To refuse, close it with a code and a reason: a browser cannot see the status of an
   * upgrade that failed.
   */
  accept(socket: WebSocket, request: IncomingMessage, parameters: Record<string, string>): void;
}

export interface SocketRouter {
  upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void;
  /** Tells every client that we go away (RFC 6455 section 7.4.1), and resolves when all have left. */
  close(): Promise<void>;
  /** Cuts off those that have not. */
  terminate(): void;
}

export function socketRouter(
  routes: readonly SocketRoute[],
  { socketsMax = SOCKETS_MAX }: { socketsMax?: number } = {},
): SocketRouter {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: SOCKET_MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
  });
  let closing = false;
  return {
    upgrade,
    close,
    terminate() {
      for (const socket of server.clients) socket.terminate();
    },
  };

  function upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    // A client that vanishes during the handshake is nobody's fault, and the stream closes itself.
    stream.on("error", () => {});
    const url = URL.parse(request.url ?? "", "http://gateway.invalid");
    const full = closing || server.clients.size >= socketsMax;
    if (full) refuse(stream, 503);
    else if (!url || !lead(url)) refuse(stream, 404);

    function lead(address: URL): boolean {
      for (const route of routes) {
        const parameters = route.match(address);
        if (!parameters) continue;
        server.handleUpgrade(request, stream, head, (socket) => {
          // A broken frame closes the socket by itself, with the code that says why.
          socket.on("error", () => {});
          route.accept(socket, request, parameters);
        });
        return true;
      }
      return false;
    }
  }

  async function close(): Promise<void> {
    closing = true;
    for (const socket of server.clients) socket.close(1001, "the gateway stops");
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

function refuse(stream: Duplex, status: 404 | 503): void {
  stream.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
  );
}
