import { join } from "node:path";
import { expect } from "chai";
import { agent } from "../../../schemas/apps/agent.ts";
import { agentLogsOf } from "../../../schemas/split-streams.ts";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { keyOf, SECRETS_KEY, startAgentWorld } from "../../../scripts/testing/agent-world.ts";
import { BLANK_LOG_S } from "./agent-log.ts";

const MAIN = join(import.meta.dirname, "../../../scripts/testing/agent-host-main.ts");
const APP = `
import { Agent } from "trunkline/agents";
export class Plain extends Agent { onRequest() { return new Response("done"); } }`;

describe("an agent that was only addressed when its host was killed", function () {
  this.timeout(240_000);

  it("leaves a record that expires, and nothing after its next owner has stopped", async () => {
    await using world = await startAgentWorld();
    const program = { main: MAIN, parameters: [SECRETS_KEY] };
    const start = async (name: string) => {
      const host = new ActorProcess({ url: world.world.url, name, program });
      await host.ready;
      return host;
    };
    const key = keyOf("names", "Plain", "one");
    const ask = () =>
      world.client.call(agent, key, "request", { method: "GET", url: "http://a/", headers: [] });
    const { bus } = world.world;
    const { stream, log } = agentLogsOf(bus.layout, key);
    const last = () => bus.readLast(stream, log(key));
    let host = await start("one");
    try {
      await world.deploy("names", APP, { agents: [{ binding: "PLAIN", class_name: "Plain" }] });
      await ask();
      await host.kill();
      expect((await last())?.header.get("Nats-TTL")).to.equal(`${BLANK_LOG_S}s`);
      host = await start("two");
      await ask();
      expect((await last())?.header.get("Nats-TTL")).to.equal(`${BLANK_LOG_S}s`);
      await host.stop();
      expect(await last()).to.equal(undefined);
    } finally {
      await host.kill();
    }
  });
});
