/** Routes WebSocket upgrades by their path. */
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { type WebSocket, WebSocketServer } from "ws";
import { ActorError, ERRORS } from "../../schemas/errors.ts";
import { countWork, watchLevel } from "../../schemas/meter.ts";

/**
 * Limits the open WebSockets of one gateway, and the bytes of one WebSocket message. Such a message fits into one
 * message on the bus, as base64 in JSON.
 */
const SOCKETS_MAX = 10_000;
export const SOCKET_MESSAGE_BYTES_MAX = 512 * 1024;
/** Time in which a client must read all data before the close frame and answer the close frame. */
export const SOCKET_CLOSE_MS_MAX = 5_000;

/** The decision about an upgrade: the function that serves the socket, or the response that refuses the upgrade. */
export type Admission =
  | {
      accept(socket: WebSocket, stream: Duplex): void;
      /** Limits the bytes of one message from the client. The default is SOCKET_MESSAGE_BYTES_MAX. */
      messageBytesMax?: number | undefined;
    }
  | {
      refuse: {
        status: number;
        contentType: string;
        text: string;
        headers?: Readonly<Record<string, string>>;
      };
    };

export interface SocketRoute {
  /** Whether this route serves the request. */
  match(url: URL, request: IncomingMessage): boolean;
  /**
   * Decides about the upgrade. The signal aborts when the client has left. A thrown ActorError refuses the upgrade
   * with its status.
   */
  admit(request: IncomingMessage, signal: AbortSignal): Promise<Admission>;
}

export interface SocketRouter {
  upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void;
  /**
   * Sends every client a close frame with the code "going away" (RFC 6455 section 7.4.1), and resolves when all
   * clients have left.
   */
  close(): Promise<void>;
  /** Closes the connections of all clients that have not left. */
  terminate(): void;
}

export function socketRouter(
  routes: readonly SocketRoute[],
  { socketsMax = SOCKETS_MAX, logger }: { socketsMax?: number; logger?: Logger } = {},
): SocketRouter {
  const servers = new SocketServers();
  let closing = false;
  let admitting = 0;
  const unwatch = watchLevel("sockets", () => servers.count);
  return {
    upgrade,
    close,
    terminate() {
      for (const socket of servers.clients()) socket.terminate();
    },
  };

  function upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    // Errors are ignored: a client that disconnects during the handshake is not a fault, and the stream closes
    // itself.
    stream.on("error", ignore);
    const url = URL.parse(request.url ?? "", "http://gateway.invalid");
    const route = url && routes.find((one) => one.match(url, request));
    if (!route) refuse(stream, { status: 404 });
    else if (closing || servers.count + admitting >= socketsMax) {
      countWork("socket_upgrades_total", { outcome: "full" });
      refuse(stream, { status: 503, headers: { "Retry-After": "1" } });
    } else void admit(route);

    async function admit(served: SocketRoute): Promise<void> {
      const left = new AbortController();
      const leave = () => left.abort(new ActorError("cancelled", "Cannot admit: the client left"));
      stream.once("close", leave);
      admitting += 1;
      try {
        const admission = await served.admit(request, left.signal);
        if (stream.destroyed) return;
        if ("refuse" in admission) {
          const { status, contentType, text, headers } = admission.refuse;
          countWork("socket_upgrades_total", { outcome: "refused" });
          refuse(stream, { status, text, headers: { ...headers, "Content-Type": contentType } });
          return;
        }
        const { messageBytesMax = SOCKET_MESSAGE_BYTES_MAX } = admission;
        servers.of(messageBytesMax).handleUpgrade(request, stream, head, (socket) => {
          // Errors are ignored: after an invalid frame the library closes the socket with the code for the reason.
          socket.on("error", ignore);
          countWork("socket_upgrades_total", { outcome: "opened" });
          admission.accept(socket, stream);
        });
      } catch (error) {
        countWork("socket_upgrades_total", { outcome: "refused" });
        refuse(stream, refusalAnswer(error));
      } finally {
        admitting -= 1;
        stream.removeListener("close", leave);
      }
    }
  }

  function refusalAnswer(error: unknown) {
    const refusal = error instanceof ActorError ? error : undefined;
    if (!refusal || refusal.code === "internal_error") {
      logger?.error({ err: error }, "socket not admitted");
      return { status: 500 };
    }
    const { status } = ERRORS[refusal.code];
    const { retryAfterS = 1 } = refusal.details;
    const again = status === 429 || status === 503;
    const headers = {
      "Content-Type": "text/plain; charset=utf-8",
      ...(again && { "Retry-After": String(retryAfterS) }),
    };
    return { status, text: refusal.message, headers };
  }

  async function close(): Promise<void> {
    closing = true;
    for (const socket of servers.clients()) socket.close(1001, "the gateway stops");
    await servers.close();
    unwatch();
  }
}

/** Holds one WebSocket server for each limit of message bytes. */
class SocketServers {
  readonly #servers = new Map<number, WebSocketServer>();

  of(maxPayload: number): WebSocketServer {
    const server = this.#servers.get(maxPayload) ?? makeServer(maxPayload);
    this.#servers.set(maxPayload, server);
    return server;
  }

  get count(): number {
    return this.#servers.values().reduce((sum, { clients }) => sum + clients.size, 0);
  }

  clients(): WebSocket[] {
    return [...this.#servers.values()].flatMap(({ clients }) => [...clients]);
  }

  /** Resolves when every client has left. */
  async close(): Promise<void> {
    const closed = (server: WebSocketServer) =>
      new Promise<void>((resolve) => server.close(() => resolve()));
    await Promise.all([...this.#servers.values()].map(closed));
  }
}

function makeServer(maxPayload: number): WebSocketServer {
  const options = {
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    // The types of the library `ws` do not contain this option yet.
    closeTimeout: SOCKET_CLOSE_MS_MAX,
  };
  return new WebSocketServer(options);
}

/**
 * This function is at module level, because a listener lives as long as its socket, and a closure would keep the
 * request in memory.
 */
function ignore(): void {}

function refuse(
  stream: Duplex,
  {
    status,
    text = "",
    headers = {},
  }: { status: number; text?: string; headers?: Readonly<Record<string, string>> },
): void {
  const lines = Object.entries({
    ...headers,
    Connection: "close",
    "Content-Length": String(Buffer.byteLength(text)),
  }).map(([name, value]) => `${name}: ${value.replaceAll(/[^\t\x20-\x7e]/g, "")}\r\n`);
  const reason = STATUS_CODES[status] ?? "";
  stream.end(`HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n${text}`);
}
