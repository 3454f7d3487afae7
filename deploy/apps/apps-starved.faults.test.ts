import { setTimeout as wait } from "node:timers/promises";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { AppScene } from "../../scripts/testing/app-scene.ts";
import { longestLeaseMs } from "../../scripts/testing/lease-lengths.ts";
import type { RoleProcess } from "../../scripts/testing/role-process.ts";
import { standStill } from "../../scripts/testing/stand-still.ts";
import { until } from "../../scripts/testing/until.ts";

/** Number of agents that are called at the same time. On a slow machine, as many as it opens in about LOAD_MS. */
const AGENTS_MAX = 400;
/** Much less than the deadline of a request, which on a slow machine ends before 400 agents are open. */
const LOAD_MS = 12_000;
/** Number of agents by which the speed of the machine is measured. */
const MEASURED = 40;
/**
 * Number of answers after which the host is suspended (SIGSTOP). At that time, other agents are still being opened.
 */
const BEFORE = 40;
/** How much longer the suspension is than the host's lease. */
const LONGER_MS = 600;
/**
 * The longest call with the suspension may take the time of the suspension, plus this many times the longest call
 * without one.
 */
const LONGER_MAX = 2.5;

const ONCE = '200 {"count":1}';
const TWICE = '200 {"count":2}';

const CODE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Repo extends Agent {
  initialState = { count: 0 };
  async onRequest() {
    this.setState({ count: this.state.count + 1 });
    return Response.json(this.state);
  }
}
export default {
  async fetch(request, env) {
    return (await routeAgentRequest(request, env)) ?? new Response("no", { status: 404 });
  },
};
`;

describe("a host that gets no processor for longer than its lease", function () {
  this.timeout(900_000);
  let scene: AppScene;
  let bus: Bus;
  before(async () => {
    scene = await AppScene.start();
    bus = await Bus.connect({ url: scene.servers[0]?.url ?? "", name: "test" });
    const [other] = scene.hosts;
    if (other) await scene.killHost(other);
    const agents = [{ binding: "Repo", class_name: "Repo" }];
    const { status, body } = await scene.platform.deploy("starved", CODE, { agents });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect((await scene.platform.ask("starved", "/agents/repo/first")).status).to.equal(200);
  });
  after(async () => {
    await bus?.close();
    await scene?.[Symbol.asyncDispose]();
  });

  /** Calls new agents concurrently. Resolves with the answers and the longest duration of a call. */
  async function callAll(
    name: string,
    agents: number,
    answered: (count: number) => void = () => {},
  ) {
    let [count, longest] = [0, 0];
    const startedAt = performance.now();
    const asked = Array.from({ length: agents }, async (_, number) => {
      const told = await scene.platform.ask("starved", `/agents/repo/${name}-${number}`);
      longest = Math.max(longest, performance.now() - startedAt);
      answered(++count);
      return `${told.status} ${told.text}`;
    });
    return { answers: await Promise.all(asked), longest };
  }

  /**
   * Suspends the host for longer than its lease, and returns for how long in ms. On a busy machine, a lease is longer
   * for a while, so its length is read once the host renews it no more.
   */
  async function suspend(host: RoleProcess): Promise<number> {
    const startedAt = performance.now();
    host.signal("SIGSTOP");
    const leaseMs = await longestLeaseMs(bus);
    await wait(leaseMs + LONGER_MS);
    host.signal("SIGCONT");
    return performance.now() - startedAt;
  }

  it("answers every call, runs each again only if its answer was lost, and later by little more than it stood still", async () => {
    const [host] = scene.hosts;
    if (!host) throw new Error("no host is left");
    const measured = await callAll("measured", MEASURED);
    const opened = Math.round((MEASURED * LOAD_MS) / measured.longest);
    const agents = Math.min(AGENTS_MAX, Math.max(2 * BEFORE, opened));
    const isLost = () => host.lines.some((line) => line.includes("lease lost"));
    const undisturbed = await callAll("undisturbed", agents);
    // The machine may have stood still for longer than a lease.
    if (!isLost()) expect(new Set(undisturbed.answers)).to.deep.equal(new Set([ONCE]));
    let suspended: Promise<number> | undefined;
    const still = standStill();
    const starved = await callAll("starved", agents, (count) => {
      if (count === BEFORE) suspended = suspend(host);
    });
    const stillMs = still();
    await until("the host has lost its lease", isLost, 120_000);
    const stoppedMs = Math.round((await suspended) ?? 0);
    expect(stoppedMs).to.be.greaterThan(0);
    const [usual, longest] = [Math.round(undisturbed.longest), Math.round(starved.longest)];
    console.log(
      `      ${agents} calls: longest ${usual} ms undisturbed, ${longest} ms with a stop of ${stoppedMs} ms`,
    );
    // A GET runs again if its host has stored its effect and lost the lease before it answered.
    const again = starved.answers.filter((answer) => answer !== ONCE);
    expect(new Set(again).difference(new Set([TWICE]))).to.deep.equal(new Set());
    expect(again.length).to.be.below(agents - BEFORE);
    console.log(`      ${again.length} calls ran again`);
    expect(longest - stillMs).to.be.below(stoppedMs + LONGER_MAX * usual);
  });
});
