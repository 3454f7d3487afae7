import { expect } from "chai";
import { agent } from "../../../schemas/apps/agent.ts";
import { appUsage } from "../../../schemas/apps/app-usage.ts";
import { AGENT_ROOM_BYTES } from "../../../schemas/apps/limits.ts";
import {
  ACCOUNT,
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { outgoingPlacesActor } from "../outgoing-places/outgoing-places.ts";
import { outgoingWebhookActor } from "../outgoing-webhook/outgoing-webhook.ts";

const APP = `
import { randomBytes } from "node:crypto";
import { Agent } from "trunkline/agents";
export class Store extends Agent {
  async onRequest(request) {
    const { put = 0, del, end, hook } = await request.json();
    if (end) await this.destroy();
    else {
      const [table] = this.sql\`SELECT name FROM sqlite_master WHERE name = 'kept'\`;
      if (!table && put === 0) return Response.json(0);
      this.sql\`CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, bytes BLOB)\`;
      if (del) this.sql\`DELETE FROM kept\`;
      for (let left = put; left > 0; left -= 10_000) this.sql\`INSERT INTO kept (bytes) VALUES (\${randomBytes(10_000)})\`;
      if (hook) await this.webhook("http://127.0.0.1:1/", "x");
    }
    return Response.json(end ? 0 : this.sql\`SELECT count(*) AS n FROM kept\`[0].n);
  }
}`;
const CONFIG = { agents: [{ binding: "STORE", class_name: "Store" }] };

describe("the room of an account's agents", function () {
  this.timeout(120_000);
  const LIMITS = { agents: 3, bytes: 1_000_000 };
  let world: AgentWorld;
  let host: AgentHost;
  before(async () => {
    world = await startAgentWorld({ definitions: [outgoingPlacesActor, outgoingWebhookActor] });
    host = await world.host("first", { limits: LIMITS });
    await world.deploy("rooms", APP, CONFIG);
  });
  after(() => world[Symbol.asyncDispose]());

  const key = (name: string) => keyOf("rooms", "Store", name);
  const ask = async (name: string, wanted: object) => {
    const request = {
      ...{ method: "POST", url: "http://app/", headers: [] },
      body: { text: JSON.stringify(wanted) },
    };
    const answer = await world.client.call(agent, key(name), "request", request);
    return Number(answer.body && "text" in answer.body ? answer.body.text : Number.NaN);
  };
  const usage = async () => {
    const { agents, bytes } = await world.client.call(appUsage, ACCOUNT, "get", {});
    return { agents, bytes };
  };

  it("counts agents that store something: one that only answers does not count", async () => {
    expect(await ask("silent", {})).to.equal(0);
    expect(await usage()).to.deep.equal({ agents: 0, bytes: 0 });
    expect(await ask("a", { put: 100_000 })).to.equal(10);
    const { agents, bytes } = await usage();
    expect(agents).to.equal(1);
    expect(bytes).to.be.within(100_000, 150_000);
    expect(bytes % AGENT_ROOM_BYTES).to.equal(0);
  });

  it("ends at the limit of agents: the next is refused at every try, and existing ones are not", async () => {
    for (const name of ["b", "c"]) expect(await ask(name, { put: 10_000 })).to.equal(1);
    for (let tries = 0; tries < 2; tries++) {
      const { code, message } = await refusalOf(ask("d", { put: 10_000 }));
      expect(code).to.equal("limit_reached");
      expect(message).to.match(/^Cannot create the agent: the account has 3, .*AGENTS_PER_ACCOUNT/);
    }
    // The agent may read but not write.
    expect(await ask("d", {})).to.equal(0);
    expect(await ask("b", { put: 10_000 })).to.equal(2);
    expect((await usage()).agents).to.equal(3);
  });

  it("is free again when an agent is destroyed, and taken when it comes back", async () => {
    await ask("c", { put: 200_000 });
    const before = await usage();
    await ask("c", { end: true });
    const after = await usage();
    expect(after.agents).to.equal(2);
    expect(before.bytes - after.bytes).to.be.greaterThan(200_000);
    expect(await ask("d", { put: 10_000 })).to.equal(1);
    expect((await refusalOf(ask("c", { put: 10_000 }))).code).to.equal("limit_reached");
    await ask("d", { end: true });
    expect(await ask("c", { put: 10_000 })).to.equal(1);
    expect((await usage()).agents).to.equal(3);
  });

  it("ends at the limit of bytes: a larger write is refused without a trace, and smaller ones go on", async () => {
    const { bytes } = await usage();
    const room = Math.floor((LIMITS.bytes - bytes) / 10_000) * 10_000;
    const { code, message } = await refusalOf(ask("c", { put: room + 20_000 }));
    expect(code).to.equal("limit_reached");
    expect(message).to.match(
      /store 1000000 bytes, which is the limit \(TRUNKLINE_AGENT_BYTES_PER_/,
    );
    expect(await ask("c", {})).to.equal(1);
    // Database pages have headers beside the rows, so the database takes a little more space than its rows.
    expect(await ask("c", { put: Math.floor((room * 0.85) / 10_000) * 10_000 })).to.be.greaterThan(
      20,
    );
    expect((await usage()).bytes).to.be.at.most(LIMITS.bytes);
    expect((await refusalOf(ask("a", { put: 200_000 }))).code).to.equal("limit_reached");
    expect(await ask("a", {})).to.equal(10);
  });

  it("is remembered in their logs by their next owner", async () => {
    const before = await usage();
    await host.stop();
    host = await world.host("second", { limits: { ...LIMITS, bytes: 10_000_000 } });
    expect(await ask("a", {})).to.equal(10);
    expect(await usage()).to.deep.equal(before);
    expect(await ask("a", { put: 10_000 })).to.equal(11);
    await ask("a", { put: 500_000 });
    const grown = await usage();
    expect(grown.bytes - before.bytes).to.be.within(400_000, 800_000);
  });

  it("holds webhooks that go out as well", async () => {
    const stored = { agent: key("a"), part: "outgoing" as const };
    await world.client.send(appUsage, ACCOUNT, "stored", { ...stored, bytes: 10_000_000 });
    await until("it is counted", async () => (await usage()).bytes >= 10_000_000);
    const { code, message } = await refusalOf(ask("b", { hook: true }));
    expect({ code, message }).to.deep.equal({
      code: "limit_reached",
      message:
        "Cannot store: the account's agents store 10000000 bytes, which is the limit (TRUNKLINE_AGENT_BYTES_PER_ACCOUNT)",
    });
    await world.client.send(appUsage, ACCOUNT, "stored", { ...stored, bytes: 0 });
    await until("it is let go", async () => (await usage()).bytes < 10_000_000);
    expect(await ask("b", { hook: true })).to.equal(2);
  });
});
