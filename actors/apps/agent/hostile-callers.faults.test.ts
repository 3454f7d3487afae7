import { expect } from "chai";
import { agent, appEntry } from "../../../schemas/apps/agent.ts";
import type { AppRequest } from "../../../schemas/apps/app-exchange.ts";
import { appKey } from "../../../schemas/apps/app-names.ts";
import { AGENT_NAME_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import { AGENT_APP, AGENT_APP_CONFIG } from "../../../scripts/testing/agent-app.ts";
import {
  ACCOUNT,
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";

const request: AppRequest = { method: "GET", url: "http://app/agents/counter/a", headers: [] };

describe("hosts of agents, asked by anybody", function () {
  this.timeout(120_000);
  let world: AgentWorld;
  let host: AgentHost;
  before(async () => {
    world = await startAgentWorld();
    host = await world.host();
    await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
  });
  after(() => world[Symbol.asyncDispose]());

  it("keep nothing of apps that there are not", async () => {
    const calls = Array.from({ length: 50 }, (_, index) => {
      const app = `nobody-${index}`;
      return [
        world.client.call(appEntry, appKey(ACCOUNT, app), "upgrade", request),
        world.client.call(agent, keyOf(app, "Counter", "a"), "request", request),
      ];
    }).flat();
    const refusals = await Promise.all(calls.map((call) => refusalOf(call)));
    expect(new Set(refusals.map(({ code }) => code))).to.deep.equal(new Set(["not_found"]));
    expect(host.agents.processes.apps).to.equal(0);
    await world.client.call(agent, keyOf("hooks", "Counter", "a"), "request", request);
    expect(host.agents.processes.apps).to.equal(1);
  });

  it("refuse a too long agent name before anything is opened", async () => {
    const open = (name: string) =>
      world.client.call(agent, keyOf("hooks", "Counter", name), "request", request);
    await open("n".repeat(AGENT_NAME_CHARS_MAX));
    // Each emoji takes twelve characters when it is encoded in a subject.
    const { code, message } = await refusalOf(open("😀".repeat(37)));
    expect(code).to.equal("invalid_request");
    expect(message).to.include("name is too long");
  });
});
