import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { LEASE_TTL_MS } from "../../schemas/limits.ts";
import { stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import { AppScene } from "../../scripts/testing/app-scene.ts";
import { until } from "../../scripts/testing/until.ts";

const AGENTS = 400;
/**
 * Number of answers after which the host is suspended (SIGSTOP). At that time, other agents are still being opened.
 */
const BEFORE = 40;
const STOP_MS = LEASE_TTL_MS + 600;
/**
 * The longest call with the suspension may take the time of the suspension, plus this many times the longest call
 * without one.
 */
const LONGER_MAX = 2.5;

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
  this.timeout(300_000);
  let scene: AppScene;
  before(async () => {
    scene = await AppScene.start();
    const [other] = scene.hosts;
    if (other) await scene.killHost(other);
    const agents = [{ binding: "Repo", class_name: "Repo" }];
    const { status, body } = await scene.platform.deploy("starved", CODE, { agents });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect((await scene.platform.ask("starved", "/agents/repo/first")).status).to.equal(200);
  });
  after(() => scene?.[Symbol.asyncDispose]());

  /** Calls new agents concurrently. Resolves with the answers and the longest duration of a call. */
  async function callAll(name: string, answered: (count: number) => void = () => {}) {
    let [count, longest] = [0, 0];
    const startedAt = performance.now();
    const asked = Array.from({ length: AGENTS }, async (_, number) => {
      const told = await scene.platform.ask("starved", `/agents/repo/${name}-${number}`);
      longest = Math.max(longest, performance.now() - startedAt);
      answered(++count);
      return `${told.status} ${told.text}`;
    });
    return { answers: new Set(await Promise.all(asked)), longest };
  }

  /**
   * Waits until all leases have their usual length: on a busy machine, a lease is longer for a while and would
   * survive the suspension of the host.
   */
  async function leaseIsUsual() {
    const bus = await Bus.connect({ url: scene.servers[0]?.url ?? "", name: "test" });
    const { stream, leases } = stateSubjects(stateBucket(0));
    await until(
      "every lease is as short as usual",
      async () => {
        const stored = await Promise.all(
          (await bus.subjectsOf(stream, leases)).map((subject) => bus.readLast(stream, subject)),
        );
        return stored.every((lease) => !lease?.string().includes("ttlMs"));
      },
      120_000,
    );
    await bus.close();
  }

  it("answers every call, runs each once, and later by little more than it stood still", async () => {
    const [host] = scene.hosts;
    if (!host) throw new Error("no host is left");
    const undisturbed = await callAll("undisturbed");
    await leaseIsUsual();
    let continued = 0;
    const starved = await callAll("starved", (count) => {
      if (count !== BEFORE) return;
      host.signal("SIGSTOP");
      setTimeout(() => {
        host.signal("SIGCONT");
        continued = performance.now();
      }, STOP_MS);
    });
    await until("the host has lost its lease", () => {
      return host.lines.some((line) => line.includes("lease lost"));
    });
    expect(continued).to.be.greaterThan(0);
    const [usual, longest] = [Math.round(undisturbed.longest), Math.round(starved.longest)];
    console.log(
      `      longest call ${usual} ms undisturbed, ${longest} ms with a stop of ${STOP_MS} ms`,
    );
    // An agent whose call ran twice would return 2.
    expect([...undisturbed.answers, ...starved.answers]).to.deep.equal([
      '200 {"count":1}',
      '200 {"count":1}',
    ]);
    expect(longest).to.be.below(STOP_MS + LONGER_MAX * usual);
  });
});
