/** Routes WebSocket upgrades by their path. */
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { type WebSocket, WebSocketServer } from "ws";
import { ActorError, ERRORS } from "../../schemas/errors.ts";
import { countWork, watchLevel } from "../../schemas/meter.ts";
import { type SocketPlace, SocketPlaces } from "./socket-places.ts";

/** Limits the bytes of one WebSocket message. It fits into one message on the bus, as base64 in JSON. */
export const SOCKET_MESSAGE_BYTES_MAX = 512 * 1024;
/** Time in which a client must read all data before the close frame and answer the close frame. */
export const SOCKET_CLOSE_MS_MAX = 5_000;

/** The decision about an upgrade: the function that serves the socket, or the response that refuses the upgrade. */
export type Admission =
  | {
      accept(socket: WebSocket, stream: Duplex): void;
      /** The socket counts for this account. */
      accountId: string;
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

/** An upgrade whose admission is being decided. */
export interface PendingUpgrade {
  /** Aborts when the client has left. */
  signal: AbortSignal;
  /**
   * Counts the upgrade, and later its socket, for this account. Refuses with `busy` if the account has its share. A
   * route calls it as soon as it knows the account, so that a refused upgrade starts no work.
   */
  countFor(accountId: string): void;
}

export interface SocketRoute {
  /** Whether this route serves the request. */
  match(url: URL, request: IncomingMessage): boolean;
  /** Decides about the upgrade. A thrown ActorError refuses the upgrade with its status. */
  admit(request: IncomingMessage, pending: PendingUpgrade): Promise<Admission>;
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
  { socketsMax: max, logger }: { socketsMax?: number; logger?: Logger } = {},
): SocketRouter {
  const servers = new SocketServers();
  const places = new SocketPlaces({ max, logger });
  let closing = false;
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
    const place = route && !closing ? places.tryTake() : undefined;
    if (!route) refuse(stream, { status: 404 });
    else if (!place) {
      countWork("socket_upgrades_total", { outcome: "full" });
      refuse(stream, { status: 503, headers: { "Retry-After": "1" } });
    } else void admit(route, place);

    async function admit(served: SocketRoute, place: SocketPlace): Promise<void> {
      const left = new AbortController();
      const { signal } = left;
      const leave = () => left.abort(new ActorError("cancelled", "Cannot admit: the client left"));
      stream.once("close", leave);
      const countFor = (accountId: string) => place.countFor(accountId);
      try {
        const admission = await served.admit(request, { signal, countFor });
        if (stream.destroyed) return;
        if ("refuse" in admission) {
          const { status, contentType, text, headers } = admission.refuse;
          countWork("socket_upgrades_total", { outcome: place.isPastShare ? "share" : "refused" });
          refuse(stream, { status, text, headers: { ...headers, "Content-Type": contentType } });
          return;
        }
        place.countFor(admission.accountId);
        const { messageBytesMax = SOCKET_MESSAGE_BYTES_MAX } = admission;
        servers.of(messageBytesMax).handleUpgrade(request, stream, head, (socket) => {
          // Errors are ignored: after an invalid frame the library closes the socket with the code for the reason.
          socket.on("error", ignore);
          place.keepFor(socket);
          countWork("socket_upgrades_total", { outcome: "opened" });
          admission.accept(socket, stream);
        });
      } catch (error) {
        countWork("socket_upgrades_total", { outcome: place.isPastShare ? "share" : "refused" });
        refuse(stream, refusalAnswer(error));
      } finally {
        place.end();
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
  // The server allows half-open connections and does not watch one after its upgrade. So without this, a client that
  // never closes would keep the connection.
  stream.once("finish", () => stream.destroy());
  stream.end(`HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n${text}`);
}
