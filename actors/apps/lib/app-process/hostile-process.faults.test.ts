import { join } from "node:path";
import { expect } from "chai";
import { agent } from "../../../../schemas/apps/agent.ts";
import type { AppRequest } from "../../../../schemas/apps/app-exchange.ts";
import { APP_HELD_BYTES_MAX } from "../../../../schemas/apps/limits.ts";
import {
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../../scripts/testing/agent-world.ts";
import { processArguments } from "../../process/arguments.ts";
import { HeldBytes } from "./held-bytes.ts";
import { weightOf } from "./weight.ts";

/** An app whose code gets the link to its host, and sends the messages that a test requests. */
const FORGER = `
import { Agent } from "trunkline/agents";
const FORGED = {
  gateways: (agent) => ["a b", "*", "x\\r\\nPUB a 1", "__proto__", "a.b", ""].map((gateway) => ({
    type: "act", agent, after: 0, actions: [{ gateway, to: [1], frame: "x" }],
  })),
  closes: (agent) => [[2000, ""], [1006, ""], [1000, "é".repeat(100)]].map(([code, reason]) => ({
    type: "act", agent, after: 0, actions: [{ gateway: "g", to: [1], close: { code, reason } }],
  })),
  node: () => ["NODE_HANDLE_ACK", "NODE_HANDLE_NACK", "NODE_HANDLE", "NODE_X"].map((cmd) => ({ cmd, type: "net.Socket" })),
  nothing: () => [null, 1, "x", {}, { type: "none" }],
  numbers: (agent) => [{
    type: "act", agent, after: 0,
    actions: [{ gateway: "g", to: Array.from({ length: 100_000 }, () => Number.MAX_SAFE_INTEGER), frame: "x" }],
  }],
  parts: (agent) => [{ type: "part", agent, stream: 1, after: 0, part: { bytes: new Uint8Array(65_537) } }],
  faults: (agent) => [{ type: "part", agent, stream: 1, after: 0, part: { failed: "x".repeat(101) } }],
  unasked: (agent) => Array.from({ length: 3_000 }, (_, stream) => ({
    type: "part", agent, stream, after: 0, part: { bytes: new Uint8Array(65_536) },
  })),
  results: (agent) => [{ type: "finished", agent, turn: 1, after: "x", result: null }],
  held: (agent) => Array.from({ length: 3_000 }, () => ({
    type: "act", agent, after: 1e9, actions: [{ gateway: "g", to: [1], frame: "x".repeat(50_000) }],
  })),
};
export class Forger extends Agent {
  async onRequest(request) {
    const forged = new URL(request.url).pathname.slice(1);
    if (forged === "cycle") {
      const secret = {};
      secret.secret = secret;
      const told = [];
      for (const wrong of [secret, 1, [1]]) {
        told.push(await this.webhook("http://127.0.0.1/", {}, { secret: wrong }).catch(String));
      }
      return new Response(told.join());
    }
    if (forged === "") return new Response("well");
    this.sql\`CREATE TABLE IF NOT EXISTS t (v)\`;
    this.sql\`INSERT INTO t VALUES (1)\`;
    await this.ctx.storage.sync();
    for (const message of FORGED[forged](forger.agent)) {
      forger.say(message);
    }
    return new Response("said");
  }
}
export default {};
`;
const CONFIG = { agents: [{ binding: "Forger", class_name: "Forger" }] };

/** Starts the platform's own program, except for its first file. */
const forgingProgram: typeof processArguments = (folders) => ({
  ...processArguments(folders),
  main: join(import.meta.dirname, "../../package/testing/forging-main.ts"),
});

describe("a process that sends messages that none of ours sends", function () {
  this.timeout(120_000);
  let world: AgentWorld;
  before(async () => {
    world = await startAgentWorld();
    await world.host("first", { program: forgingProgram });
    for (const app of ["forger", "other"]) await world.deploy(app, FORGER, CONFIG);
  });
  after(() => world[Symbol.asyncDispose]());

  const ask = async (app: string, path: string) => {
    const request: AppRequest = { method: "GET", url: `http://app/${path}`, headers: [] };
    const answer = await world.client.call(
      agent,
      keyOf(app, "Forger", path || "a"),
      "request",
      request,
      { deadlineMs: 60_000 },
    );
    return answer.body && "text" in answer.body ? answer.body.text : "";
  };

  for (const forged of ["gateways", "closes", "node", "nothing", "held", "parts", "faults"]) {
    it(`ends, and its host goes on: ${forged}`, async () => {
      const error = await ask("forger", forged).catch((thrown: Error) => thrown);
      expect(error).to.be.instanceOf(Error);
      expect((error as Error).message).to.include("The process of the app has ended");
      const logged = world.log.filter(({ msg }) => msg === "process of an app ended");
      expect(logged.length).to.be.greaterThan(0);
      expect(await ask("other", "")).to.equal("well");
      expect(await ask("forger", "")).to.equal("well");
    });
  }

  for (const forged of ["numbers", "results", "unasked"]) {
    it(`does no harm to its host: ${forged}`, async () => {
      await ask("forger", forged).catch(() => {});
      expect(await ask("other", "")).to.equal("well");
    });
  }

  it("hears that an argument has the wrong type, and nothing ends", async () => {
    const told = await ask("forger", "cycle");
    expect(told.match(/an argument has the wrong type/g)).to.have.length(3);
  });

  it("HeldBytes takes APP_HELD_BYTES_MAX and not one more", () => {
    const reasons: string[] = [];
    const held = new HeldBytes((reason) => reasons.push(reason));
    held.hold(APP_HELD_BYTES_MAX);
    expect(reasons).to.deep.equal([]);
    expect(held.hasRoom(1)).to.equal(false);
    held.release(1);
    held.hold(1);
    expect(reasons).to.deep.equal([]);
    held.hold(1);
    expect(reasons).to.have.length(1);
  });

  it("weightOf() counts texts, bytes and their envelope", () => {
    const texts = [{ a: "x".repeat(1_000) }, new Uint8Array(2_000), [1, 2, 3]];
    expect(weightOf(texts)).to.be.within(4_000, 4_400);
    expect(weightOf(undefined)).to.be.lessThan(100);
  });
});
