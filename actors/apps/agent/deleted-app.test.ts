import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { agent, appEntry } from "../../../schemas/apps/agent.ts";
import { app } from "../../../schemas/apps/app.ts";
import { appUsage } from "../../../schemas/apps/app-usage.ts";
import {
  ACCOUNT,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { BlobStore } from "../../runtime/store/blob-store.ts";
import { appActor } from "../app/app.ts";
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

/** Deploys an app and waits until a turn of its agent and one of its entry wait for what they fetch. */
async function turnsThatWait(world: AgentWorld) {
  const held: ServerResponse[] = [];
  const after: (string | undefined)[] = [];
  const gate = await startHttpServer(({ url }, response) => {
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
  const answer = () => {
    for (const response of held) response.end();
  };
  return {
    key,
    async expectNothingMore() {
      answer();
      for (const turn of turns) expect(await turn).to.not.equal("done");
      expect(after).to.deep.equal([]);
    },
    async [Symbol.asyncDispose]() {
      answer();
      await gate[Symbol.asyncDispose]();
    },
  };
}

describe("an agent whose app is deleted", function () {
  this.timeout(240_000);

  it("fetches nothing more, and neither does the app's entry", async () => {
    await using world = await startAgentWorld();
    const { agents } = await world.host("first");
    await using waiting = await turnsThatWait(world);
    await world.client.call(app, waiting.key, "delete", {});
    await until("its process has ended", () => agents.processes.count === 0, 15_000);
    await waiting.expectNothingMore();
  });

  describe("while its host cannot read which version serves", () => {
    let fails = false;
    let failures = 0;
    const { getServing } = appActor.handlers;
    const failingApp: typeof appActor = {
      ...appActor,
      handlers: {
        ...appActor.handlers,
        getServing(...given) {
          if (!fails) return getServing(...given);
          failures += 1;
          throw new Error("the host of the app fails");
        },
      },
    };
    const definitions = [failingApp, appListActor, appPortsActor, outgoingWebhookActor];

    /** Resolves when the host has heard of the deletion and could not read more. */
    const deleteUnheard = async ({ client }: AgentWorld, key: string) => {
      [fails, failures] = [true, 0];
      await client.call(app, key, "delete", {});
      await until("its host tries to read", () => failures > 0);
    };

    it("fetches nothing more after the next request for the app", async () => {
      await using world = await startAgentWorld({ definitions });
      const { processes } = (await world.host("first")).agents;
      await using waiting = await turnsThatWait(world);
      await deleteUnheard(world, waiting.key);
      fails = false;
      await until("a request is refused", async () => {
        return (await refusalOf(processes.of(waiting.key))).code === "not_found";
      });
      await until("its process has ended", () => processes.count === 0, 15_000);
      await waiting.expectNothingMore();
    });

    it("fetches nothing more after the next request, also if another app has the name", async () => {
      await using world = await startAgentWorld({ definitions });
      const { processes } = (await world.host("first")).agents;
      await using waiting = await turnsThatWait(world);
      const { key } = waiting;
      const { process } = await processes.of(key);
      await deleteUnheard(world, key);
      const { id } = await world.client.call(app, key, "getDeleting", {});
      await world.client.send(app, key, "purged", { id });
      await until("the app is gone", async () => {
        const deleting = await world.client.call(app, key, "getDeleting", {});
        return deleting.id === undefined;
      });
      failures = 0;
      await world.deploy("store", "export default { fetch: () => new Response() }");
      await until("its host tries to read", () => failures > 0);
      fails = false;
      await until("the other app has started", () =>
        processes.of(key).then(
          (running) => running.process !== process,
          () => false,
        ),
      );
      await until("the process has ended", () => process.isEnded, 15_000);
      await waiting.expectNothingMore();
    });
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
    // The process may end under the turn, so the caller is refused in any case.
    const last = ask(`http://127.0.0.2:${gate.port}/`).catch(() => {});
    const response = await arrived.promise;
    await world.client.call(app, key, "delete", {});
    await until("it is purged", async () => (await usage()).apps.length === 0, 60_000);
    response.end("go on");
    await last;
    expect(await usage()).to.deep.equal({ agents: 0, bytes: 0, apps: [] });
  });
});
