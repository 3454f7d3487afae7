import { expect } from "chai";
import { agent } from "../../../schemas/apps/agent.ts";
import { AGENT_APP, AGENT_APP_CONFIG } from "../../../scripts/testing/agent-app.ts";
import {
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";

const CODE = `
import { Agent } from "trunkline/agents";
export class Runner extends Agent {
  async onRequest(request) {
    const { pathname } = new URL(request.url);
    await fetch(this.env.OUTSIDE + pathname);
    if (pathname === "/time") for (;;);
    const kept = [];
    if (pathname === "/memory") for (;;) kept.push({ text: Math.random().toString() });
    return new Response("done");
  }
  async call(path) { return this.env.Runner.getByName("other").fetch("http://app" + path).then(String, (error) => error.message); }
}
export default {};
`;

describe("an agent's turn that reaches a bound", function () {
  this.timeout(240_000);
  let world: AgentWorld;
  let host: AgentHost;
  let outside: Awaited<ReturnType<typeof startHttpServer>>;
  let runs: string[] = [];
  before(async () => {
    outside = await startHttpServer((request, response) => {
      runs.push(request.url ?? "");
      if (request.url !== "/waits") response.end();
    });
    world = await startAgentWorld();
    host = await world.host("first");
    await world.deploy("runs", CODE, {
      agents: [{ binding: "Runner", class_name: "Runner" }],
      vars: { OUTSIDE: `http://${outside.address}:${outside.port}` },
    });
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    await outside[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    runs = [];
  });
  const ask = (name: string, path: string) =>
    world.client.call(
      agent,
      keyOf("runs", "Runner", name),
      "request",
      { method: "POST", url: `http://app${path}`, headers: [] },
      { deadlineMs: 120_000 },
    );

  for (const [path, bound] of [
    ["/time", /code held it for 10000 ms|it has not answered for 30000 ms/],
    ["/memory", /its objects take more than 256 MB of memory|it takes more than 768 MB/],
  ] as const) {
    it(`is not run again if no other turn was under way, and its caller learns which bound: ${path}`, async () => {
      const { code, message, details } = await refusalOf(ask("a", path));
      expect(code).to.equal("app_failed");
      expect(message).to.match(bound);
      expect(details.bound).to.match(bound);
      expect(runs).to.deep.equal([path]);
      expect((await ask("a", "/")).body).to.deep.equal({ text: "done" });
    });
  }

  it("leaves the state of other agents of the app as it was", async () => {
    await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
    const counter = async (name: string, what: string, body?: unknown) => {
      const { body: answer } = await world.client.call(
        agent,
        keyOf("hooks", "Counter", name),
        "request",
        {
          method: body === undefined ? "GET" : "POST",
          url: `http://app/agents/counter/one/${what}`,
          headers: [["content-type", "application/json"]],
          ...(body !== undefined && { body: { text: JSON.stringify(body) } }),
        },
      );
      return JSON.parse(answer && "text" in answer ? answer.text : "");
    };
    await counter("innocent", "event", { id: "a" });
    const { message } = await refusalOf(counter("bad", "eat"));
    expect(message).to.match(/memory|process of the app has ended/);
    expect((await counter("innocent", "state")).count).to.equal(1);
  });

  it("a bundle that runs for ever at its start is refused, without a word against its code", async () => {
    // A slow machine may be the cause, so the error does not blame the app.
    const late = await refusalOf(world.check("endless", "for (;;);"));
    expect(late.code).to.equal("deadline_exceeded");
    // The process may reach either of its limits first.
    expect(late.message).to.match(/not ready after|code held it/);
  });

  it("is tried once more if another turn may have reached the bound", async () => {
    const waiting = ask("waits", "/waits").catch(() => {});
    await until("one waits", () => runs.includes("/waits"));
    const { message } = await refusalOf(ask("b", "/memory"));
    expect(message).to.match(/MB of memory/);
    expect(runs.filter((path) => path === "/memory")).to.have.length(2);
    await host.stop();
    await waiting;
  });
});
