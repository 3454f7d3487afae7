/** Starts and stops the gateway: one HTTP server for requests and WebSockets. */
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Express } from "express";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { ActorError } from "../schemas/errors.ts";
import { GIT_PROCESS_MS_MAX } from "../schemas/repositories/limits.ts";
import { firstStart } from "./account/first-start.ts";
import {
  addressesOf,
  buildApp,
  type GatewayParts,
  routesOfApps,
  routeTable,
  SOCKET_PATHS,
} from "./app.ts";
import { AppPorts } from "./apps/app-ports.ts";
import { serveAppRest } from "./apps/app-rest.ts";
import { answerAppTokens } from "./apps/app-tokens.ts";
import { AgentSockets } from "./apps/sockets/agent-sockets.ts";
import { clientAddress } from "./http/client-address.ts";
import { hasBody } from "./http/has-body.ts";
import { listen } from "./http/listen.ts";
import { type RequestCount, RequestCounts } from "./http/request-counts.ts";
import { type SocketRoute, type SocketRouter, socketRouter } from "./http/socket-router.ts";
import { upgradesThrough } from "./http/upgrade-requests.ts";
import { TokenFinder } from "./oauth/tokens/token-finder.ts";
import { collectProcessMetrics } from "./platform/metrics.ts";

/** Limits the bytes of all headers of one request together. */
const HEADER_BYTES_MAX = 16_384;
/**
 * The headers of a request must be complete after the first time, and the whole request after the second. Otherwise
 * slow senders would hold sockets.
 */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 120_000;
/**
 * Idle time after which the gateway closes a connection. Load balancers usually close after 60 s, so they always
 * close first.
 */
export const KEEP_ALIVE_MS = 72_000;

/**
 * The share of the shutdown time for the requests in flight. The rest is for the parts that stop after the gateway.
 */
const DRAIN_SHARE = 0.5;

/** The parts of the gateway that its process provides; `startGateway` makes the others. */
type GivenParts = Omit<
  GatewayParts,
  "appPorts" | "counts" | "isStopping" | "missing" | "now" | "readMs" | "registry" | "stopping"
>;

export interface GatewayContext extends GivenParts {
  /** Returns the names of other parts of this process that are not ready. */
  missing?: () => readonly string[];
  registry?: Registry;
  socketRoutes?: readonly SocketRoute[];
  /** Aborts a start that waits for actors. */
  signal?: AbortSignal;
  /** Returns the time of day. Default: this machine's. */
  now?: () => number;
  timeouts?: { headersMs: number; requestMs: number };
}

export interface RunningGateway {
  name: "gateway";
  port: number;
  /** Returns the counts of requests since the start, by route. */
  counts(): readonly RequestCount[];
  /**
   * Prepares the stop: the gateway still handles requests, but reports that it is not ready, and closes each
   * connection after the next response.
   */
  leave(): void;
  /**
   * Stops the gateway. Waits for the requests in flight for at most DRAIN_SHARE of the shutdown time, and then closes
   * their connections.
   */
  stop(): Promise<void>;
}

/** While the gateway leaves, closes each connection of the server after its response. */
function endConnections(
  server: Server,
  gateway: { isLeaving(): boolean; isStopping(): boolean },
): void {
  server.prependListener("request", (_request, response) => {
    // Without this, a client would send its next request on a connection that is being closed.
    if (gateway.isLeaving()) response.shouldKeepAlive = false;
  });
  server.on("request", (_request, response) => {
    response.once("close", () => {
      // At a stop, Node closes only connections that are idle at its beginning. So connections that become idle later
      // are closed here.
      if (gateway.isStopping()) setImmediate(() => server.closeIdleConnections());
    });
  });
}

/** Starts the gateway. Resolves when it accepts requests and the first account exists. */
export async function startGateway(context: GatewayContext): Promise<RunningGateway> {
  const { config, logger, registry = new Registry(), missing = () => [] } = context;
  collectProcessMetrics(registry);
  let started = false;
  let isLeaving = false;
  const counts = new RequestCounts();
  const leaving = new AbortController();
  const { appsPorts: range } = config;
  const ports =
    context.apps && range && new AppPorts({ ...context, range, makeServer: () => makeServer() });
  const parts: GatewayParts = {
    ...context,
    appPorts: ports,
    registry,
    counts,
    missing: () => [...missing(), ...(started ? [] : ["the first account"])],
    isStopping: () => isLeaving,
    now: context.now ?? (() => Date.now()),
    stopping: leaving.signal,
  };
  // Clients and the code of apps use the same route table, so that they share its limits.
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
  const agentSockets = agentSocketsOf(parts, app);
  const socketRoutes = socketRoutesOf(context, app, agentSockets);
  const sockets = socketRouter(socketRoutes, { logger });
  let stopping = false;
  const server = makeServer();
  const port = await listen(server, config);
  try {
    await whenActorsAnswer(context, async () => {
      await makeFirstAccount(context);
      await ports?.openAll();
    });
  } catch (error) {
    await stop();
    throw error;
  }
  started = true;
  return { name: "gateway", port, counts: () => counts.all(), leave, stop };

  function leave(): void {
    isLeaving = true;
  }

  function makeServer(): Server {
    const made = httpServer(app, context.timeouts);
    made.on("upgrade", sockets.upgrade);
    endConnections(made, { isLeaving: () => isLeaving, isStopping: () => stopping });
    return made;
  }

  async function stop(): Promise<void> {
    leave();
    stopping = true;
    leaving.abort(new ActorError("unavailable", "Cannot answer: this server is stopping"));
    const withinMs = config.shutdownSeconds * DRAIN_SHARE * 1_000;
    const late = await drain([server, ...(ports?.servers ?? [])], { sockets, logger, withinMs });
    // An agent that does not answer in time learns of the closed socket when it sends its next frame.
    await Promise.race([agentSockets?.close(), sleep(withinMs, undefined, { ref: false })]);
    leaveTokens?.();
    await appRest?.close();
    clearTimeout(late);
  }
}

function agentSocketsOf(parts: GatewayParts, app: Express): AgentSockets | undefined {
  const { apps } = parts;
  if (!apps) return undefined;
  return new AgentSockets({
    ...parts,
    ...apps,
    addresses: addressesOf(parts, apps),
    clientOf: (request) => clientAddress(app, request),
  });
}

function socketRoutesOf(
  { socketRoutes = [], devtools }: GatewayContext,
  app: Express,
  agentSockets: AgentSockets | undefined,
): SocketRoute[] {
  return [
    ...socketRoutes,
    // The sockets of agents come first: at the origin of an app every path belongs to the app.
    ...(agentSockets ? [agentSockets] : []),
    ...(devtools ? [upgradesThrough(app, SOCKET_PATHS)] : []),
  ];
}

/**
 * Resolves when all requests and sockets have ended. After `withinMs` a timer closes them by force. The caller must
 * clear the returned timer.
 */
async function drain(
  servers: readonly Server[],
  { sockets, logger, withinMs }: { sockets: SocketRouter; logger: Logger; withinMs: number },
): Promise<NodeJS.Timeout> {
  const closed = servers.map((one) => once(one, "close"));
  // `close` refuses new connections and closes idle ones.
  for (const one of servers) one.close();
  const late = setTimeout(() => {
    logger.warn({}, "requests cut off: the time to stop is over");
    for (const one of servers) one.closeAllConnections();
    sockets.terminate();
  }, withinMs);
  await Promise.all([...closed, sockets.close()]);
  return late;
}

/** Creates the HTTP server with limits on the headers and on the time in which a request must arrive. */
function httpServer(app: RequestListener, timeouts: GatewayContext["timeouts"]): Server {
  const { headersMs = HEADERS_TIMEOUT_MS, requestMs = REQUEST_TIMEOUT_MS } = timeouts ?? {};
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      // An Upgrade header is only an offer (RFC 9110 section 7.8). Some clients offer another protocol with each
      // request, so only WebSocket upgrades are accepted.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
      headersTimeout: headersMs,
      // A git push may take as long as the git process may run. `endWhenLate` sets a shorter limit for all other
      // requests.
      requestTimeout: Math.max(requestMs, GIT_PROCESS_MS_MAX),
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.ceil(headersMs / 2),
    },
    app,
  );
  server.on("request", (request, response) => {
    // `headersTimeout` limits a request without a body, so it needs no timer.
    const isTimed = hasBody(request) && !request.url?.startsWith("/git/");
    if (isTimed) endWhenLate(request, response, requestMs);
  });
  return server;
}

/** Closes the connection if the whole request has not arrived after `withinMs`. */
function endWhenLate(request: IncomingMessage, response: ServerResponse, withinMs: number): void {
  const { socket } = request;
  const late = setTimeout(() => {
    // `end` comes only when somebody has read the request. Its answer may take longer than the request.
    if (!request.complete) socket.destroy();
  }, withinMs);
  const end = () => {
    if (request.complete || socket.destroyed) clearTimeout(late);
  };
  // The timer must continue if the answer ends before the whole request has arrived.
  for (const stream of [request, response]) stream.once("close", end);
  request.once("end", end);
}

async function makeFirstAccount({ actors, config, logger }: GatewayContext): Promise<void> {
  const { dataDir, publicUrl, metricsToken } = config;
  await firstStart({ actors, dataDir, publicUrl, logger, metricsToken });
}

/** Runs work that needs actors, and retries it until actors answer. They may start later and on other machines. */
async function whenActorsAnswer(
  { logger, signal }: GatewayContext,
  work: () => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      await work();
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
