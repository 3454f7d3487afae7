import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { agentInbox, type Delivery } from "../../../schemas/apps/agent-inbox.ts";
import { DELIVERY_ERROR_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, STREAMS, shardOf } from "../../../schemas/subjects.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import {
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { answerDeliveries } from "./delivered.ts";

const CODE = `
import { Agent } from "trunkline/agents";
export class Hooks extends Agent {
  async onRequest(request) {
    if ((await request.text()) === "long") throw new Error("x".repeat(5_000));
    await fetch(this.env.OUTSIDE);
    return new Response("well");
  }
}
export default {};
`;

describe("what becomes of deliveries", function () {
  this.timeout(180_000);
  let world: AgentWorld;
  let host: AgentHost;
  let outside: Server;
  let app: string;
  let runs = 0;
  let answer: (response: ServerResponse) => void = (response) => response.end("well");
  before(async () => {
    outside = createServer((_request, response) => {
      runs += 1;
      answer(response);
    });
    await once(outside.listen(0, "127.0.0.1"), "listening");
    world = await startAgentWorld();
    host = await world.host("first");
    app = await world.deploy("hooks", CODE, {
      agents: [{ binding: "Hooks", class_name: "Hooks" }],
      vars: { OUTSIDE: `http://127.0.0.1:${(outside.address() as AddressInfo).port}` },
    });
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    await new Promise((resolve) => outside.close(resolve));
  });

  /** Returns a delivery as its inbox stores it after the first attempt. */
  async function tried(key: string, text = "event"): Promise<Delivery> {
    await world.client.call(agentInbox, key, "receive", {
      source: "test",
      eventId: "1",
      request: { method: "POST", url: "http://app/in", headers: [], body: { text } },
      bodyBytes: text.length,
      keep: { days: 1, count: 10 },
    });
    return until(
      "the first try has ended",
      async () => {
        const { deliveries } = await world.client.call(agentInbox, key, "list", { limit: 1 });
        const [first] = deliveries;
        const isOver = first?.error !== undefined || first?.status === "delivered";
        return isOver && first;
      },
      60_000,
    );
  }

  it("an answered event is delivered", async () => {
    expect(await tried(keyOf("hooks", "Hooks", "a"))).to.include({
      status: "delivered",
      attempts: 1,
      answerStatus: 200,
    });
  });

  it("an error is cut to its kept length", async () => {
    const { error } = await tried(keyOf("hooks", "Hooks", "b"), "long");
    expect(error).to.have.length(DELIVERY_ERROR_CHARS_MAX);
  });

  it("an event whose agent does not open says why at once", async () => {
    const unknown = await tried(keyOf("hooks", "Nobody", "c"));
    expect(unknown.error).to.include('the app has no class "Nobody"');
    expect(unknown.status).to.equal("waiting");
    expect((await tried(keyOf("nowhere", "Hooks", "c"))).error).to.match(/^Cannot /);
  });

  it("an event that ends its process runs twice in a try, and no more", async () => {
    runs = 0;
    const next = Promise.withResolvers<ServerResponse>();
    answer = async (response) => {
      // The third run belongs to the next attempt. Its response is held back until the test has checked the first
      // attempt.
      if (runs > 2) return next.resolve(response);
      const { process: running } = await host.agents.processes.of(app);
      process.kill(running.pid, "SIGKILL");
    };
    const { error, attempts } = await tried(keyOf("hooks", "Hooks", "d"));
    expect(attempts).to.equal(1);
    expect(error).to.include("The process of the app has ended");
    (await next.promise).end("well");
    answer = (response) => response.end("well");
    const delivered = await until(
      "the next try is taken",
      async () => {
        const key = keyOf("hooks", "Hooks", "d");
        const { deliveries } = await world.client.call(agentInbox, key, "list", { limit: 1 });
        return deliveries[0]?.status === "delivered" && deliveries[0];
      },
      30_000,
    );
    expect(delivered.attempts).to.equal(2);
    expect(runs).to.equal(3);
  });

  it("an inbox that does not answer is notified by mail", async () => {
    await using quiet = await startWorld();
    const key = keyOf("hooks", "Hooks", "e");
    await answerDeliveries(quiet.client, key, { id: "1", attempt: 1 }, [{ status: 200 }]);
    const address = addressOf(agentInbox.kind, key);
    const mail = await quiet.bus.readLast(STREAMS.mail, mailIn(0).to(shardOf(address), address));
    const { message, input } = mail?.json<{ message: string; input: unknown }>() ?? {};
    expect(message).to.equal("delivered");
    expect(input).to.deep.equal({ id: "1", attempt: 1, status: 200, next: [] });
  });
});
