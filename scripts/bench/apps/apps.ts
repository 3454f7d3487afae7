/**
 * Benchmarks of apps against the same programs without a platform: signed webhooks, broadcasts, cold agents, and idle
 * sockets.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSecretKey } from "../../../actors/apps/lib/app-secrets/secret-box.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { giveToken, openAccount } from "../../../gateway/testing/test-gateway.ts";
import { ALL_PERMISSIONS } from "../../../schemas/account/permissions.ts";
import { agent } from "../../../schemas/apps/agent.ts";
import { keyOf, startAgentWorld } from "../../testing/agent-world.ts";
import { startNats } from "../../testing/nats-server.ts";
import { RoleProcess } from "../../testing/role-process.ts";
import {
  alternate,
  type Benchmark,
  type Figure,
  type Load,
  loadFigures,
  median,
  ROUND_MS,
} from "../benchmark.ts";
import { Child } from "../child.ts";
import { Instance } from "../instance.ts";
import { BenchBus } from "../runtime/bench-bus.ts";
import type { ClientQuestion } from "./app-client-process.ts";
import { BENCH_CODE, BENCH_CONFIG, BENCH_SECRET } from "./app-code.ts";

const IN_FLIGHT = 64;
const WATCHING = 1_000;
const BROADCASTS = 50;
const BROADCASTS_IN_FLIGHT = 4;
/**
 * The most sockets that each of these accounts can have at one gateway after those before it: together SOCKETS_MAX.
 */
const IDLE_SOCKETS = [7_500, 1_875, 469, 117, 30, 7, 2];
const IDLE_AGENTS = 100;
const GATEWAY_MB_MAX = 300;
const COLD_TIMES = 20;
const COLD_MS_MAX = 50;
const SNAPSHOT_BYTES = 1_000_000;

export const appWebhooks: Benchmark = {
  name: "app-webhooks",
  async run() {
    await using scene = await Scene.start();
    const { ours, reference } = scene;
    const figures: Figure[] = [];
    for (const { name, path, status, atLeast } of [
      { name: "webhook to an agent by code", path: "/by-code", status: 200, atLeast: 0.6 },
      { name: "webhook to a declared endpoint", path: "/declared", status: 202, atLeast: 0.8 },
    ]) {
      const send = (url: string) =>
        scene.ask<Load>({
          ...{ ask: "events", url: url + path, status },
          ...{ inFlight: IN_FLIGHT, ms: ROUND_MS },
        });
      const rounds = await alternate(
        () => send(reference),
        () => send(ours),
      );
      const title = `${name}, ${IN_FLIGHT} in flight`;
      figures.push(...loadFigures(title, rounds, { perSecond: { atLeast } }));
    }
    return figures;
  },
};

export const appBroadcasts: Benchmark = {
  name: "app-broadcasts",
  async run() {
    await using scene = await Scene.start();
    await using other = await Child.start("apps/app-client-process");
    const room = "/agents/room/one";
    const open = (url: string, path: string): ClientQuestion => ({
      ...{ ask: "open", url: url.replace("http", "ws") },
      ...{ paths: [path], count: WATCHING },
    });
    await scene.ask(open(scene.ours, room));
    await other.ask(open(scene.reference, "/room"));
    const rounds = await alternate(
      () => other.ask<number>(broadcasts(`${scene.reference}/room`)),
      () => scene.ask<number>(broadcasts(scene.ours + room)),
    );
    const rate = (ms: number) => (BROADCASTS / ms) * 1_000;
    return [
      {
        name: `broadcast to ${WATCHING} sockets`,
        unit: "/s",
        ours: median(rounds.ours.map(rate)),
        reference: median(rounds.reference.map(rate)),
        target: { atLeast: 0.7 },
      },
    ];
  },
};

const broadcasts = (url: string): ClientQuestion => ({
  ...{ ask: "broadcasts", url },
  ...{ times: BROADCASTS, inFlight: BROADCASTS_IN_FLIGHT },
});

/** Measures how much longer the first response of an agent takes if the agent is not in memory than if it is. */
export const appCold: Benchmark = {
  name: "app-cold",
  async run() {
    await using world = await startAgentWorld();
    await world.host();
    await world.deploy("cold", COLD_CODE, {
      agents: [{ binding: "Store", class_name: "Store" }],
    });
    const key = keyOf("cold", "Store", "one");
    const request = (method: string) =>
      timed(() =>
        world.client.call(agent, key, "request", {
          ...{ method, url: "http://app/agents/store/one", headers: [] },
        }),
      );
    await request("POST");
    const warm: number[] = [];
    const cold: number[] = [];
    for (let round = 0; round < COLD_TIMES; round++) {
      await world.client.call(agent, key, "reload", {});
      cold.push(await request("GET"));
      warm.push(await request("GET"));
    }
    const name = "first answer of a cold agent with 1 MB";
    return [
      { name, unit: "ms p50", ours: median(cold), reference: median(warm) },
      {
        name: "what it takes beyond a warm one",
        unit: "ms p50",
        ours: median(cold) - median(warm),
        target: { atMost: COLD_MS_MAX },
      },
    ];
  },
};

/** Code of an agent with random data, because data that compresses well would be unrealistic. */
const COLD_CODE = `
import { randomBytes } from "node:crypto";
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Store extends Agent {
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS parts (bytes BLOB)\`; }
  onRequest(request) {
    if (request.method === "POST") {
      for (let part = 0; part < 100; part++) {
        this.sql\`INSERT INTO parts VALUES (\${randomBytes(${SNAPSHOT_BYTES / 100})})\`;
      }
    }
    return Response.json([...this.sql\`SELECT count(*) AS count FROM parts\`]);
  }
}
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("", { status: 404 }) };
`;

async function timed(action: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await action();
  return performance.now() - startedAt;
}

/** Measures idle sockets at a process that has only the role `gateway`. */
export const appSockets: Benchmark = {
  name: "app-sockets",
  async run() {
    await using ends = new AsyncDisposableStack();
    const folder = await temporaryFolder(ends);
    const nats = ends.use(await startNats());
    const settings = {
      TRUNKLINE_NATS_URL: nats.url,
      TRUNKLINE_SECRETS_KEY: newSecretKey(),
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "1000000",
    };
    const start = async (name: string) =>
      ends.use(await RoleProcess.start(name, folder, { ...settings, TRUNKLINE_ROLES: name }));
    const gateway = await start("gateway");
    const host = await start("actors");
    await Promise.all([gateway.ready(), host.ready()]);
    const { base_url } = await gateway.credentials();
    const bus = await Bus.connect({ url: nats.url, name: "bench" });
    ends.defer(() => bus.close());
    const actors = new BusActorClient(bus, clock);
    const paths = Array.from({ length: IDLE_AGENTS }, (_, at) => `/agents/room/room-${at}`);
    const questions: ClientQuestion[] = [];
    for (const count of IDLE_SOCKETS) {
      const account_id = await openAccount(actors, "Bench");
      const api_token = await giveToken(actors, account_id, ALL_PERMISSIONS);
      const account = { base_url, account_id, api_token };
      await deploy(account);
      const url = appUrl(account).replace("http", "ws");
      questions.push({ ask: "open", url, paths, count });
    }
    const client = ends.use(await Child.start("apps/app-client-process"));
    const before = await residentMb(gateway.pid);
    const startedAt = performance.now();
    let sockets = 0;
    for (const question of questions) sockets = await client.ask<number>(question);
    const perSecond = (sockets / (performance.now() - startedAt)) * 1_000;
    const name = `a gateway with ${sockets} idle sockets`;
    return [
      {
        name,
        unit: "MB resident",
        ours: await residentMb(gateway.pid),
        target: { atMost: GATEWAY_MB_MAX },
      },
      { name: "the same with none", unit: "MB resident", ours: before },
      { name: "sockets opened", unit: "/s", ours: perSecond },
    ];
  },
};

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024;
}

/** Starts Trunkline in one process, the references in another, and a client process that sends to both. */
class Scene implements AsyncDisposable {
  readonly ours: string;
  readonly reference: string;
  readonly #client: Child;
  readonly #ends: AsyncDisposableStack;

  static async start(): Promise<Scene> {
    await using ends = new AsyncDisposableStack();
    const folder = await temporaryFolder(ends);
    const bus = ends.use(await BenchBus.start());
    const reference = ends.use(await Child.start("apps/app-reference-process", folder, bus.url));
    const instance = ends.use(await Instance.start());
    const client = ends.use(await Child.start("apps/app-client-process"));
    await deploy(instance.credentials());
    const urls = {
      ours: appUrl(instance.credentials()),
      reference: await reference.ask<string>({}),
    };
    return new Scene(urls, client, ends.move());
  }

  constructor(
    { ours, reference }: { ours: string; reference: string },
    client: Child,
    ends: AsyncDisposableStack,
  ) {
    this.ours = ours;
    this.reference = reference;
    this.#client = client;
    this.#ends = ends;
  }

  ask<T>(question: ClientQuestion): Promise<T> {
    return this.#client.ask<T>(question);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ends.disposeAsync();
  }
}

interface Account {
  base_url: string;
  account_id: string;
  api_token: string;
}

const appUrl = ({ base_url, account_id }: Account) =>
  `${base_url.replace(/\/v4$/, "")}/apps/${account_id}/${BENCH_CONFIG.name}`;

async function deploy({ base_url, account_id, api_token }: Account): Promise<void> {
  const app = `${base_url}/accounts/${account_id}/apps/${BENCH_CONFIG.name}`;
  for (const [url, body] of [
    [`${app}/secrets/HOOK`, { value: BENCH_SECRET }],
    [app, { config: BENCH_CONFIG, bundle: BENCH_CODE }],
  ] as const) {
    const response = await fetch(url, {
      method: "PUT",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`Cannot deploy: ${await response.text()}`);
  }
}

async function temporaryFolder(ends: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-"));
  ends.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}
