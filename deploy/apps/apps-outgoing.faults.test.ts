import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { newSecretKey } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { OUTGOING_TIMEOUT_MS } from "../../actors/apps/workers/webhook-post/webhook-post.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { inRequest } from "../../actors/runtime/lib/trace.ts";
import { readSteps } from "../../actors/runtime/observe/request-steps.ts";
import { OUTGOING_PLACES_MAX } from "../../schemas/apps/limits.ts";
import { outgoingWebhook } from "../../schemas/apps/outgoing-webhook.ts";
import { startHttpServer } from "../../scripts/testing/loopback-server.ts";
import { startNats, type TestNatsServer } from "../../scripts/testing/nats-server.ts";
import { RoleProcess } from "../../scripts/testing/role-process.ts";
import { standStill } from "../../scripts/testing/stand-still.ts";
import { until } from "../../scripts/testing/until.ts";

/** More agents than the lane `post` has room for tasks. */
const AGENTS = 1_100;
const SENT_AT_ONCE = 64;
const PROBES = 5;
const HOSTS = 2;
/**
 * Limit of the time of a webhook of another account. It is less than one timeout of the endpoint that hangs, and on a
 * slow machine relative to the same webhook while nothing else happens.
 */
const PROBE_MS_MAX = OUTGOING_TIMEOUT_MS / 2;
const SLOWER_MAX = 20;
const ARRIVAL_MS_MAX = 900_000;

describe("an account whose endpoint hangs", function () {
  this.timeout(2_400_000);
  let folder: string;
  let nats: TestNatsServer;
  let bus: Bus;
  let actors: BusActorClient;
  let receiver: Awaited<ReturnType<typeof startHttpServer>>;
  let started = 0;
  const secretKey = newSecretKey();
  const hosts: RoleProcess[] = [];
  /** How often each path was posted. */
  const posted = new Map<string, number>();
  /** The id of the request of the last webhook of the other account. */
  let lastRequest = "";
  const hanging = new Set<ServerResponse>();
  let isStuck = true;
  let mostAtOnce = 0;
  const [hostile, other] = ["a", "b"].map((digit) => digit.repeat(32)) as [string, string];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-outgoing-"));
    await chmod(folder, 0o755);
    nats = await startNats();
    receiver = await startHttpServer((request, response) => {
      const path = request.url ?? "";
      posted.set(path, (posted.get(path) ?? 0) + 1);
      request.resume();
      if (!isStuck || !path.startsWith("/hang/")) return void response.end();
      hanging.add(response);
      response.once("close", () => hanging.delete(response));
      mostAtOnce = Math.max(mostAtOnce, hanging.size);
    });
    for (let index = 0; index < HOSTS; index++) await addHost();
    bus = await Bus.connect({ url: nats.url, name: "test" });
    actors = new BusActorClient(bus, clock);
  });
  after(async () => {
    await bus?.close();
    await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()));
    for (const response of hanging) response.destroy();
    await receiver?.close();
    await nats?.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  async function addHost(): Promise<void> {
    started += 1;
    const host = await RoleProcess.start(`host-${started}`, folder, {
      TRUNKLINE_ROLES: "actors",
      TRUNKLINE_NATS_URL: nats.url,
      TRUNKLINE_SECRETS_KEY: secretKey,
      TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
    });
    hosts.push(host);
    await host.ready();
  }

  async function send(account: string, agent: string, path: string): Promise<void> {
    const url = `http://127.0.0.2:${receiver.port}${path}`;
    const webhook = { id: path, url, payload: { text: "x".repeat(2_000) }, payloadBytes: 2_000 };
    const options = { deadlineMs: 120_000 };
    await actors.call(
      outgoingWebhook,
      `${account}.hooks.Sender.${agent}`,
      "send",
      { ...webhook, contentType: "application/json" },
      options,
    );
  }

  /** Posts webhooks of the other account, one after the other. Returns the times until they arrived. */
  async function probe(): Promise<number[]> {
    const times: number[] = [];
    for (let i = 0; i < PROBES; i++) {
      const path = `/other/${randomBytes(4).toString("hex")}`;
      const startedAt = performance.now();
      const still = standStill();
      lastRequest = path.slice("/other/".length);
      await inRequest("run", lastRequest, () => send(other, `agent-${i}`, path));
      await until(`${path} arrives`, () => posted.has(path), ARRIVAL_MS_MAX);
      times.push(Math.round(performance.now() - startedAt - still()));
    }
    return times.sort((one, two) => one - two);
  }

  function check(times: readonly number[], idle: readonly number[], what: string): void {
    console.log(`      ${what}: ${times.join(", ")} ms; idle ${idle.join(", ")} ms`);
    const limit = Math.max(PROBE_MS_MAX, SLOWER_MAX * (idle.at(-1) ?? 0));
    expect(times.at(-1)).to.be.below(limit);
  }

  it("delays no webhook of another account, also after a host is killed, and loses none of its own", async () => {
    await probe();
    const idle = await probe();
    const left = Array.from({ length: AGENTS }, (_, index) => index);
    const senders = Array.from({ length: SENT_AT_ONCE }, async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        await send(hostile, `agent-${next}`, `/hang/${next}`);
      }
    });
    await Promise.all(senders);
    check(await probe(), idle, "beside 1,100 agents");
    await until("the task is a step of the request that sent the webhook", async () => {
      const steps = await readSteps(bus, lastRequest, AbortSignal.timeout(60_000));
      return steps.some(({ way, name }) => way === "task" && name === "webhook-post post");
    });
    const { state } = await bus.jetstream.streams.info("TASKS");
    expect(state.messages).to.be.at.most(OUTGOING_PLACES_MAX + 2);
    expect(mostAtOnce).to.be.at.most(OUTGOING_PLACES_MAX);
    const [killed] = hosts.splice(0, 1);
    await killed?.[Symbol.asyncDispose]();
    // The first webhook waits for the takeover.
    await probe();
    check(await probe(), idle, "after a host was killed");
    await addHost();
    isStuck = false;
    for (const response of hanging) response.end();
    const numbers = Array.from({ length: AGENTS }, (_, index) => index);
    const arePosted = () => numbers.every((index) => posted.has(`/hang/${index}`));
    await until("all were posted", arePosted, ARRIVAL_MS_MAX);
    const counts = { arrived: 0, waiting: 0, failed: 0 };
    for (const index of numbers) {
      const key = `${hostile}.hooks.Sender.agent-${index}`;
      const { webhook } = await actors.call(outgoingWebhook, key, "get", { number: 1 });
      counts[webhook.status] += 1;
    }
    // Those that found the endpoint hanging wait for their next attempt.
    console.log(`      ${JSON.stringify(counts)}`);
    expect(counts.failed).to.equal(0);
  });
});
