import { expect } from "chai";
import { agent } from "../../../schemas/apps/agent.ts";
import { socketsSubject } from "../../../schemas/apps/agent-sockets.ts";
import { appKey } from "../../../schemas/apps/app-names.ts";
import { appUsage } from "../../../schemas/apps/app-usage.ts";
import { CALL_DEADLINE_MS_MAX, CLOCK_SKEW_MS_MAX } from "../../../schemas/limits.ts";
import {
  ACCOUNT,
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { AgentLogKeys } from "./agent-keys.ts";

const APP = `
import { Agent } from "trunkline/agents";
export class Plain extends Agent {
  async onRequest(request) {
    const what = await request.text();
    if (what === "put") this.sql\`CREATE TABLE kept (id INTEGER PRIMARY KEY)\`;
    if (what === "drop") this.sql\`DROP TABLE kept\`;
    if (what === "mark") this.sql\`PRAGMA user_version = 7\`;
    if (what === "later") await this.schedule(3600, "onRequest");
    if (what === "end") await this.destroy();
    return new Response("done");
  }
}`;
const CONFIG = { agents: [{ binding: "PLAIN", class_name: "Plain" }] };
const GATEWAY = "test";

describe("agents that were only addressed", function () {
  this.timeout(240_000);
  let world: AgentWorld;
  let host: AgentHost;
  let keys: AgentLogKeys;
  let laterMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + laterMs };
  const start = async (name: string) => {
    const limits = { agents: 2, bytes: 0 };
    host = await world.host(name, { limits, clock, agentIdleMs: 100, agentsMax: 3 });
  };
  before(async () => {
    world = await startAgentWorld();
    keys = new AgentLogKeys(world.world.bus);
    await start("first");
    await world.deploy("names", APP, CONFIG);
    world.world.bus.connection.subscribe(socketsSubject(GATEWAY), {
      callback: (_, msg) => void msg.respond(JSON.stringify({ gone: [] })),
    });
  });
  beforeEach(() => {
    laterMs = 0;
  });
  after(() => world[Symbol.asyncDispose]());

  const ask = (name: string, what: string) =>
    world.client.call(agent, keyOf("names", "Plain", name), "request", {
      ...{ method: "POST", url: "http://app/", headers: [], body: { text: what } },
    });
  const stored = async () =>
    (await keys.beneath(appKey(ACCOUNT, "names"))).map((key) => key.split(".").at(-1)).toSorted();
  const untilStored = (...names: string[]) =>
    until(`only ${names} stay`, async () => (await stored()).join() === names.join(), 60_000);
  const usage = async () => {
    const { agents, bytes } = await world.client.call(appUsage, ACCOUNT, "get", {});
    return { agents, bytes };
  };
  /** Lets the time pass after which no copy of a call runs. */
  const settleCalls = () => {
    laterMs += CALL_DEADLINE_MS_MAX + CLOCK_SKEW_MS_MAX + 1;
  };

  it("leave nothing, however many there are, where idle ones must make room too", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `name-${at}`);
    for (const name of names) await ask(name, "hello");
    await untilStored();
    expect(await usage()).to.deep.equal({ agents: 0, bytes: 0 });
  });

  it("leave nothing when their host stops", async () => {
    await ask("stopped", "hello");
    await host.stop();
    expect(await stored()).to.deep.equal([]);
    await start("second");
  });

  it("leave nothing of sockets that have closed, once no copy of a call may come", async () => {
    const key = keyOf("names", "Plain", "socket");
    const connection = { id: "c", number: 1, gateway: GATEWAY };
    const request = { method: "GET", url: "http://app/", headers: [] };
    await world.client.call(agent, key, "connect", { connection, request });
    expect((await usage()).agents).to.equal(1);
    const close = { code: 1000, reason: "" };
    await world.client.call(agent, key, "disconnect", { connection, close, wasClean: true });
    await ask("other", "hello");
    await untilStored("socket");
    settleCalls();
    await untilStored();
    await until("it is not counted", async () => (await usage()).agents === 0);
    expect(await usage()).to.deep.equal({ agents: 0, bytes: 0 });
  });

  it("leave nothing when the account may have no more agents, and existing ones stay", async () => {
    for (const name of ["one", "two"]) await ask(name, "put");
    for (const name of ["three", "four"]) {
      const { code, message } = await refusalOf(ask(name, "put"));
      expect(code).to.equal("limit_reached");
      expect(message).to.match(/the account has 2, .*TRUNKLINE_AGENTS_PER_ACCOUNT/);
    }
    settleCalls();
    await ask("other", "hello");
    await untilStored("one", "two");
    expect((await usage()).agents).to.equal(2);
  });

  it("are all that has dropped its data or was destroyed, and none that stores a timer or a number", async () => {
    await ask("one", "drop");
    await ask("two", "end");
    // The next host removes what a host left that stopped while copies of calls might come.
    await host.stop();
    expect(await stored()).to.include("one");
    await start("third");
    for (const name of ["one", "two"]) await ask(name, "hello");
    settleCalls();
    await untilStored();
    expect(await usage()).to.deep.equal({ agents: 0, bytes: 0 });
    await ask("one", "mark");
    await ask("two", "later");
    settleCalls();
    await ask("other", "hello");
    await untilStored("one", "two");
    expect((await usage()).agents).to.equal(2);
  });
});
