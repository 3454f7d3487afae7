/** Starts and stops the gateway: one HTTP server for requests and WebSockets. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Router } from "express";
import type { Logger } from "pino";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { ActorClient } from "../actors/runtime/actor-client.ts";
import type { BlobStore } from "../actors/runtime/blob-store.ts";
import type { LiveUpdates } from "../actors/runtime/live.ts";
import { ActorError } from "../schemas/errors.ts";
import {
  HEADER_BYTES_MAX,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  REQUEST_TIMEOUT_MS,
} from "../schemas/limits.ts";
import { GIT_PROCESS_MS_MAX } from "../schemas/repositories/git-limits.ts";
import { firstStart } from "./account/first-start.ts";
import {
  type AppsParts,
  addressesOf,
  buildApp,
  type GatewayParts,
  routesOfApps,
  routeTable,
} from "./app.ts";
import { serveAppRest } from "./apps/app-rest.ts";
import { answerAppTokens } from "./apps/app-tokens.ts";
import { AgentSockets } from "./apps/sockets/agent-sockets.ts";
import { type SocketRoute, socketRouter } from "./apps/sockets/socket-router.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import { listen } from "./http/listen.ts";
import { type RequestCount, RequestCounts } from "./http/request-counts.ts";
import { TokenFinder } from "./oauth/tokens/token-finder.ts";
import type { Repositories } from "./repositories/repositories.ts";

/** What requests in flight may take of the time for a stop; the rest is for the parts that stop after the gateway. */
const DRAIN_SHARE = 0.5;

export interface GatewayContext {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "get">;
  live: LiveUpdates;
  /** Serves repositories below /git. */
  git?: Router;
  repositories?: Repositories;
  apps?: AppsParts;
  config: GatewayConfig;
  logger: Logger;
  /** True while the disk has no room for what clients store. */
  isDiskFull?: () => boolean;
  /** Names what the other parts of this process still need. */
  missing?: () => readonly string[];
  registry?: Registry;
  socketRoutes?: readonly SocketRoute[];
  /** Ends a start that still waits for actors. */
  signal?: AbortSignal;
  timeouts?: { headersMs: number; requestMs: number };
}

export interface RunningGateway {
  name: "gateway";
  port: number;
  /** What it has answered so far, by route. */
  counts(): readonly RequestCount[];
  /** Lets requests in flight finish, for as long as the configuration allows. */
  stop(): Promise<void>;
}

/** Resolves when requests are accepted and the first account is there. */
export async function startGateway(context: GatewayContext): Promise<RunningGateway> {
  const { config, logger, registry = new Registry(), missing = () => [] } = context;
  collectDefaultMetrics({ register: registry });
  let started = false;
  const counts = new RequestCounts();
  const leaving = new AbortController();
  const parts: GatewayParts = {
    ...context,
    registry,
    counts,
    missing: () => [...missing(), ...(started ? [] : ["the first account"])],
    now: () => Date.now(),
    stopping: leaving.signal,
  };
  // Once, with all they hold and bound: for clients, and for code of apps.
  const routes = routeTable(parts);
  const app = buildApp(parts, routes);
  const appRest =
    context.apps &&
    (await serveAppRest({
      ...parts,
      ...context.apps,
      routes: (authenticated) => routesOfApps(parts, routes, authenticated),
    }));
  const leaveTokens =
    context.apps &&
    answerAppTokens({ tokens: new TokenFinder(parts), answerOn: context.apps.answerOn, logger });
  const agentSockets =
    context.apps &&
    new AgentSockets({
      ...context,
      ...context.apps,
      addresses: addressesOf(context, context.apps),
    });
  const socketRoutes = [...(context.socketRoutes ?? []), ...(agentSockets ? [agentSockets] : [])];
  const sockets = socketRouter(socketRoutes, { logger });
  const { headersMs = HEADERS_TIMEOUT_MS, requestMs = REQUEST_TIMEOUT_MS } = context.timeouts ?? {};
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      // Another protocol is an offer (RFC 9110 section 7.8): some clients make it with each request, and its body is to be read.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
      headersTimeout: headersMs,
      // A push may take as long as git; of others this is seen to below.
      requestTimeout: Math.max(requestMs, GIT_PROCESS_MS_MAX),
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.ceil(headersMs / 2),
    },
    app,
  );
  server.on("upgrade", sockets.upgrade);
  let stopping = false;
  server.on("request", (request, response) => {
    if (!request.url?.startsWith("/git/")) endWhenLate(request, response, requestMs);
    response.once("close", () => {
      // Node itself closes only connections that are idle when the stop begins.
      if (stopping) setImmediate(() => server.closeIdleConnections());
    });
  });
  const port = await listen(server, config);
  try {
    await makeFirstAccount(context);
  } catch (error) {
    await stop();
    throw error;
  }
  started = true;
  return { name: "gateway", port, counts: () => counts.all(), stop };

  async function stop(): Promise<void> {
    stopping = true;
    leaving.abort(new ActorError("unavailable", "Cannot go on: this process is stopping"));
    const closed = once(server, "close");
    // New connections are refused from here on, idle ones closed.
    server.close();
    const late = setTimeout(
      () => {
        logger.warn({}, "requests cut off");
        server.closeAllConnections();
        sockets.terminate();
      },
      config.shutdownSeconds * DRAIN_SHARE * 1_000,
    );
    await Promise.all([closed, sockets.close()]);
    // Agents that do not answer learn of it when they next say something.
    const given = sleep(config.shutdownSeconds * DRAIN_SHARE * 1_000, undefined, { ref: false });
    await Promise.race([agentSockets?.close(), given]);
    leaveTokens?.();
    await appRest?.close();
    clearTimeout(late);
  }
}

/** All of a request must have come by then. */
function endWhenLate(request: IncomingMessage, response: ServerResponse, withinMs: number): void {
  const { socket } = request;
  const late = setTimeout(() => socket.destroy(), withinMs);
  const end = () => {
    if (request.complete || socket.destroyed) clearTimeout(late);
  };
  // An answer may be over before its request is.
  for (const stream of [request, response]) stream.once("close", end);
  request.once("end", end);
}

/** Actors may start later than the gateway, on other machines; until then it waits. */
async function makeFirstAccount({ actors, config, logger, signal }: GatewayContext): Promise<void> {
  const { dataDir, publicUrl, metricsToken } = config;
  for (;;) {
    try {
      await firstStart({ actors, dataDir, publicUrl, logger, metricsToken });
      return;
    } catch (error) {
      const passing =
        error instanceof ActorError &&
        ["unavailable", "busy", "deadline_exceeded"].includes(error.code);
      if (!passing) throw error;
      logger.info({ code: error.code }, "waiting for actors");
      await sleep(1_000, undefined, signal ? { signal } : {});
    }
  }
}
