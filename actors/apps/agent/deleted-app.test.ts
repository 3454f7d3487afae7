import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { agent, appEntry } from "../../../schemas/apps/agent.ts";
import { app } from "../../../schemas/apps/app.ts";
import { appUsage } from "../../../schemas/apps/app-usage.ts";
import { ACCOUNT, keyOf, startAgentWorld } from "../../../scripts/testing/agent-world.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { BlobStore } from "../../runtime/store/blob-store.ts";
import { appListActor } from "../app-list/app-list.ts";
import { appPortsActor } from "../app-ports/app-ports.ts";
import { outgoingWebhookActor } from "../outgoing-webhook/outgoing-webhook.ts";
import { appPurgeWorker } from "../workers/app-purge/app-purge.ts";

const APP = `
import { randomBytes } from "node:crypto";
import { Agent } from "trunkline/agents";
const run = async (gate) => {
  await fetch(gate);
  await fetch(gate + "after");
};
export default {
  async fetch(request) {
    await run(await request.text());
    return new Response("done");
  },
};
export class Store extends Agent {
  async onRequest(request) {
    const gate = await request.text();
    this.sql\`CREATE TABLE IF NOT EXISTS kept (bytes BLOB)\`;
    if (gate) await fetch(gate);
    this.sql\`INSERT INTO kept VALUES (\${randomBytes(200_000)})\`;
    if (gate) await fetch(gate + "after");
    return new Response("done");
  }
}`;

describe("an agent whose app is deleted", function () {
  this.timeout(240_000);

  it("fetches nothing more, and neither does the app's entry", async () => {
    await using world = await startAgentWorld();
    const { agents } = await world.host("first");
    const held: ServerResponse[] = [];
    const after: (string | undefined)[] = [];
    await using gate = await startHttpServer(({ url }, response) => {
      if (url?.endsWith("after")) after.push(url);
      if (url?.endsWith("after")) response.end();
      else held.push(response);
    });
    const key = await world.deploy("store", APP, {
      agents: [{ binding: "STORE", class_name: "Store" }],
    });
    const to = (path: string) => ({
      ...{ method: "POST", url: "http://app/", headers: [] },
      body: { text: `http://127.0.0.2:${gate.port}/${path}` },
    });
    const turns = [
      world.client.call(agent, keyOf("store", "Store", "one"), "request", to("agent")),
      world.client.call(appEntry, key, "request", to("entry")),
    ].map((turn) => turn.then(() => "done", String));
    await until("both turns wait", () => held.length === 2);
    await world.client.call(app, key, "delete", {});
    await until("its process has ended", () => agents.processes.count === 0, 15_000).finally(() => {
      for (const response of held) response.end();
    });
    for (const turn of turns) expect(await turn).to.not.equal("done");
    expect(after).to.deep.equal([]);
  });

  it("is not counted again by a turn that ends after the deletion", async () => {
    const definitions = [appListActor, appPortsActor, outgoingWebhookActor];
    await using world = await startAgentWorld({ definitions });
    const { bus } = world.world;
    await world.host("first");
    const blobs = new BlobStore(bus, systemClock);
    await world.world.worker([appPurgeWorker({ bus, blobs, buckets: 1 })]);
    const arrived = Promise.withResolvers<ServerResponse>();
    await using gate = await startHttpServer((_, response) => arrived.resolve(response));
    const key = await world.deploy("store", APP, {
      agents: [{ binding: "STORE", class_name: "Store" }],
    });
    const ask = (text: string) =>
      world.client.call(agent, keyOf("store", "Store", "one"), "request", {
        ...{ method: "POST", url: "http://app/", headers: [], body: { text } },
      });
    const usage = () => world.client.call(appUsage, ACCOUNT, "get", {});
    await ask("");
    expect((await usage()).agents).to.equal(1);
    const last = ask(`http://127.0.0.2:${gate.port}/`);
    const response = await arrived.promise;
    await world.client.call(app, key, "delete", {});
    await until("it is purged", async () => (await usage()).apps.length === 0, 60_000);
    response.end("go on");
    await once(response, "finish");
    // The turn ends while its agent leaves, so the caller is refused in any case.
    await last.catch(() => {});
    expect(await usage()).to.deep.equal({ agents: 0, bytes: 0, apps: [] });
  });
});
