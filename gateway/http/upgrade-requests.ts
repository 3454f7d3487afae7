/**
 * Passes WebSocket upgrades through the Express application, so that the checks of a route (token, permissions,
 * limits, parameters) apply to its sockets too. The handler of a route accepts its socket with `upgradeOf`.
 */
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Express, Response } from "express";
import type { WebSocket } from "ws";
import { ActorError } from "../../schemas/errors.ts";
import type { Admission, PendingUpgrade, SocketRoute } from "./socket-router.ts";

/** The request of a client for a WebSocket. */
export interface Upgrade {
  /**
   * Opens the WebSocket. The client may leave before `serve` is called. The handler can see this at the socket of the
   * request.
   */
  accept(serve: (socket: WebSocket) => void, options: { messageBytesMax: number }): void;
}

/** Counts the upgrade for an account, and returns it. */
const UPGRADES = new WeakMap<IncomingMessage, (accountId: string) => Upgrade>();

/**
 * Returns the upgrade of a request, and counts it for this account. May be called again. Refuses a request that is no
 * upgrade, and with `busy` an upgrade of an account that has its share of the sockets.
 */
export function upgradeOf({ req }: Response, accountId: string): Upgrade {
  const upgrade = UPGRADES.get(req)?.(accountId);
  if (upgrade) return upgrade;
  throw new ActorError(
    "invalid_request",
    "Cannot answer: this address is a WebSocket; expected the header Upgrade: websocket",
  );
}

/** Returns the socket route for all paths that match `paths`. The application answers their upgrades. */
export function upgradesThrough(app: Express, paths: RegExp): SocketRoute {
  return {
    match: ({ pathname }) => paths.test(pathname),
    admit: (request, { signal, countFor }: PendingUpgrade) =>
      new Promise<Admission>((resolve) => {
        const response = new ServerResponse(request);
        // Ends the response. No bytes are written to the connection here, so Node emits no "close" event itself.
        const end = () => {
          signal.removeEventListener("abort", end);
          response.emit("close");
        };
        const answer = (status: number, admission: Admission) => {
          if (!response.headersSent) response.writeHead(status);
          Object.defineProperty(response, "writableFinished", { value: true });
          resolve(admission);
          end();
        };
        signal.addEventListener("abort", end);
        UPGRADES.set(request, (accountId) => {
          countFor(accountId);
          return {
            accept: (accept, { messageBytesMax }) =>
              answer(101, { accept, accountId, messageBytesMax }),
          };
        });
        response.end = ((text?: string | Buffer) => {
          answer(response.statusCode, { refuse: refusalOf(response, text) });
          return response;
        }) as typeof response.end;
        app(request, response);
      }),
  };
}

/** The headers of a refusal that are sent to the client, because clients react to them. */
const KEPT_HEADERS = ["WWW-Authenticate", "Retry-After", "X-Request-Id"];

function refusalOf(response: ServerResponse, text: string | Buffer = "") {
  const headers = KEPT_HEADERS.flatMap((name) => {
    const value = response.getHeader(name);
    return value === undefined ? [] : [[name, String(value)]];
  });
  return {
    status: response.statusCode,
    contentType: String(response.getHeader("Content-Type") ?? "text/plain"),
    text: text.toString(),
    headers: Object.fromEntries(headers),
  };
}
