/**
 * Passes WebSocket upgrades through the Express application, so that the checks of a route hold for its sockets too:
 * token, permissions, limits, parameters. A route takes its socket with `upgradeOf`.
 */
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Express, Response } from "express";
import type { WebSocket } from "ws";
import { ActorError } from "../../schemas/errors.ts";
import type { Admission, SocketRoute } from "./socket-router.ts";

/** A client that asked for a WebSocket. */
export interface Upgrade {
  /** Makes the WebSocket. Its client may leave before `serve` is called, which the request's socket then tells. */
  accept(serve: (socket: WebSocket) => void, options: { messageBytesMax: number }): void;
}

const UPGRADES = new WeakMap<IncomingMessage, Upgrade>();

/** The upgrade that a request asks for. Refuses a request that asks for none. */
export function upgradeOf({ req }: Response): Upgrade {
  const upgrade = UPGRADES.get(req);
  if (upgrade) return upgrade;
  throw new ActorError(
    "invalid_request",
    "Cannot answer: this address is a WebSocket; expected the header Upgrade: websocket",
  );
}

/** The paths that `paths` matches are answered by the application. */
export function upgradesThrough(app: Express, paths: RegExp): SocketRoute {
  return {
    match: ({ pathname }) => paths.test(pathname),
    admit: (request, signal) =>
      new Promise<Admission>((resolve) => {
        const response = new ServerResponse(request);
        // No bytes are written to the connection here, so no other event reports the end of the response.
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
        UPGRADES.set(request, {
          accept: (accept, { messageBytesMax }) => answer(101, { accept, messageBytesMax }),
        });
        response.end = ((text?: string | Buffer) => {
          answer(response.statusCode, { refuse: refusalOf(response, text) });
          return response;
        }) as typeof response.end;
        app(request, response);
      }),
  };
}

/** Headers of a refusal that clients act on. */
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
