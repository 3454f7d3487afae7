/** A gateway on its own port, with real actors in this process and one account. */
import { once } from "node:events";
import { createServer } from "node:http";
import { pino } from "pino";
import { Registry } from "prom-client";
import { newSecretKey, SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { ACTORS } from "../../actors/main.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { AnyActorDefinition } from "../../actors/runtime/kinds/define-actor.ts";
import type { AnyWorkerDefinition } from "../../actors/runtime/workers/define-worker.ts";
import { account } from "../../schemas/account/account.ts";
import { apiToken } from "../../schemas/account/api-token.ts";
import { ALL_PERMISSIONS, type Permission } from "../../schemas/account/permissions.ts";
import { type MemoryActors, memoryActors } from "../../scripts/testing/memory-actors.ts";
import { MemoryObjects } from "../../scripts/testing/memory-objects.ts";
import { newToken } from "../account/api-token-text.ts";
import { buildApp, routeTable } from "../app.ts";
import type { GatewayConfig } from "../gateway-config.ts";
import { RequestCounts } from "../http/request-counts.ts";
import { checkDeclared, declaredBy } from "./declared-answers.ts";
import { type TestCrawls, testCrawls } from "./test-crawls.ts";
import { type TestPrinter, testPrinter } from "./test-printer.ts";

export const START = Date.UTC(2026, 10, 20, 12);

export interface Asking {
  method?: string;
  token?: string | null;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  /** Undefined when the answer is not JSON. */
  json: Wire | undefined;
}

/** The envelope, as a test reads it. */
export interface Wire {
  success: boolean;
  errors: { code: number; message: string; source?: { pointer: string } }[];
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at the result of whatever route it asked.
  result: any;
  result_info?: Record<string, number>;
}

export interface TestGateway {
  url: string;
  accountId: string;
  /** Opens everything in the account. */
  token: string;
  actors: MemoryActors;
  printer: TestPrinter;
  crawls: TestCrawls;
  /** Requests and results of jobs. */
  objects: MemoryObjects;
  /** Every line logged. */
  logs: Record<string, unknown>[];
  /** The operations and statuses of all answers so far, as "operation status". */
  answered: Set<string>;
  /** The current time of gateway and actors. */
  clock: { now: number };
  ask(path: string, asking?: Asking): Promise<Answered>;
  /** Resolves to a new token with exactly these permissions. */
  tokenWith(...permissions: Permission[]): Promise<string>;
  /** Resolves to a token with all permissions in another account. */
  tokenIn(accountId: string): Promise<string>;
  /** Notifies the gateway that it will stop soon. */
  drain(): void;
  stop(): Promise<void>;
}

export const testConfig: GatewayConfig = {
  host: "127.0.0.1",
  port: 0,
  publicUrl: "http://127.0.0.1:8787",
  dataDir: "",
  browserSecondsPerDay: 600,
  requestsPerWindow: 0,
  dnsPollSeconds: 60,
  dnsWindowSeconds: 172_800,
  shutdownSeconds: 5,
  metricsToken: "opens-metrics-in-tests",
};

/** Returns the parts of a route table, with crawls that fetch nothing. */
export function testParts(
  actors: ActorClient,
  { blobs, live } = testCrawls(),
  objects = new MemoryObjects(),
  secrets = new SecretBox([newSecretKey()]),
) {
  const { signal: stopping } = new AbortController();
  const jobs = { objects, secrets };
  const given = { actors, blobs, live, secrets, jobs };
  return { ...given, stopping, config: testConfig, now: () => Date.now() };
}

export async function testGateway({
  config = {},
  slots,
  waitingMax = 10,
  missing = () => [],
  workers = [],
  through = (actors) => actors,
  readMs,
  isDiskFull,
}: {
  config?: Partial<GatewayConfig>;
  slots?: number;
  waitingMax?: number;
  missing?: () => readonly string[];
  /** Besides the printer. */
  workers?: readonly AnyWorkerDefinition[];
  /** Wraps the client through which the gateway calls actors. */
  through?: (actors: ActorClient) => ActorClient;
  /** Limits the time of an answer with the records of a crawl. */
  readMs?: number;
  isDiskFull?: () => boolean;
} = {}): Promise<TestGateway> {
  const clock = { now: START };
  const now = () => clock.now;
  const objects = new MemoryObjects();
  const crawls = testCrawls();
  const { secrets } = crawls;
  const printer = testPrinter(slots, objects, secrets);
  const actors = memoryActors({
    actors: [...crawls.actors, ...realActors(crawls.actors)],
    workers: [printer.worker, ...workers],
    now,
    waitingMax,
  });
  const accountId = await openAccount(actors, "One");
  const token = await giveToken(actors, accountId, ALL_PERMISSIONS);

  const logs: Record<string, unknown>[] = [];
  const logger = pino({ level: "debug" }, { write: (line) => logs.push(JSON.parse(line)) });
  const wholeConfig = { ...testConfig, ...config };
  const stopping = new AbortController();
  const parts = {
    ...testParts(through(actors), crawls, objects, secrets),
    config: wholeConfig,
    stopping: stopping.signal,
    logger,
    registry: new Registry(),
    counts: new RequestCounts(),
    missing,
    now,
    ...(readMs !== undefined && { readMs }),
    ...(isDiskFull && { isDiskFull }),
  };
  const routes = routeTable(parts);
  const server = createServer(buildApp(parts, routes)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const url = `http://127.0.0.1:${address.port}`;
  const answered = new Set<string>();

  return {
    url,
    accountId,
    token,
    actors,
    printer,
    crawls,
    objects,
    logs,
    answered,
    clock,
    ask,
    tokenWith: (...permissions) => giveToken(actors, accountId, permissions),
    tokenIn: (account) => giveToken(actors, account, ALL_PERMISSIONS),
    drain: () => stopping.abort(),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };

  async function ask(path: string, asking: Asking = {}): Promise<Answered> {
    const { method = "GET", token: given = token, json, body, headers, signal } = asking;
    const sent = json === undefined ? body : JSON.stringify(json);
    const response = await fetch(url + path, {
      method,
      redirect: "manual",
      headers: {
        ...(given === null ? {} : { Authorization: `Bearer ${given}` }),
        ...(json === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent, duplex: "half" }),
      ...(signal ? { signal } : {}),
    });
    const text = await response.text();
    const type = response.headers.get("content-type") ?? "";
    const isJson = type.startsWith("application/json") && text !== "";
    const parsed = isJson ? JSON.parse(text) : undefined;
    if (path.startsWith("/v4")) {
      const { status } = response;
      const below = path.slice("/v4".length);
      const name = checkDeclared(declaredBy(routes), {
        ...{ method, path: below, status, type, body: parsed },
      });
      if (name !== undefined) answered.add(name);
    }
    return { status: response.status, headers: response.headers, text, json: parsed };
  }
}

/** Returns all actor kinds of the platform, except those that `standIns` replace. */
function realActors(standIns: readonly AnyActorDefinition[]): AnyActorDefinition[] {
  const replaced = new Set(standIns.map(({ contract }) => contract.kind));
  return ACTORS.filter(({ contract }) => !replaced.has(contract.kind));
}

/** Creates an account in these actors, without a token. Resolves to its id. */
export async function openAccount(actors: ActorClient, name: string): Promise<string> {
  const { id } = newToken();
  const roles = ["Super Administrator" as const];
  const owner = { userId: id, email: "one@example.com", roles };
  await actors.call(account, id, "open", { name, owner });
  return id;
}

/** A token of an account, as text. */
export async function giveToken(
  actors: ActorClient,
  accountId: string,
  permissions: readonly Permission[],
  more: { userId?: string; expiresAt?: number } = {},
): Promise<string> {
  const { id, text, secretHash, lastFour } = newToken();
  const entry = { id, name: "test", permissions, lastFour, ...more };
  await actors.call(account, accountId, "createToken", entry);
  const { userId: _, ...times } = more;
  await actors.call(apiToken, id, "issue", { accountId, permissions, secretHash, ...times });
  return text;
}
