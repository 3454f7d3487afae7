import { expect } from "chai";
import { agent } from "../../../schemas/apps/agent.ts";
import {
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { until } from "../../../scripts/testing/until.ts";

/** Background work that waits for the test. The record of its last writes is still on its way when the work ends. */
const WRITES = 100;
const CODE = `
import { Agent } from "trunkline/agents";
export class Worker extends Agent {
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS done (n INTEGER)\`; }
  async onRequest(request) {
    const { pathname, searchParams } = new URL(request.url);
    const gate = searchParams.get("gate");
    if (pathname === "/wait") this.ctx.waitUntil(this.work(gate));
    if (pathname === "/queue") await this.queue("work", gate);
    if (pathname === "/schedule") await this.schedule(0, "work", gate);
    const [{ count }] = this.sql\`SELECT COUNT(*) AS count FROM done\`;
    return Response.json({ count, version: this.env.VERSION });
  }
  async work(gate) {
    await fetch(gate);
    for (let n = 0; n < ${WRITES}; n += 1) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      this.sql\`INSERT INTO done VALUES (\${n})\`;
    }
  }
}
export default {};`;
const WAYS = ["wait", "queue", "schedule"];

describe("background work of an agent", function () {
  this.timeout(240_000);
  let world: AgentWorld;
  let host: AgentHost;
  const ask = async (name: string, path = "") => {
    const { body } = await world.client.call(agent, keyOf("works", "Worker", name), "request", {
      method: "GET",
      url: `http://app/${path}`,
      headers: [],
    });
    return JSON.parse(body && "text" in body ? body.text : "") as {
      count: number;
      version: string;
    };
  };
  const namesOf = (test: string) => WAYS.flatMap((way) => [`${way}-${test}-0`, `${way}-${test}-1`]);
  const deploy = (version: string) =>
    world.deploy("works", CODE, {
      agents: [{ binding: "Worker", class_name: "Worker" }],
      vars: { VERSION: version },
    });

  /** Begins work of each kind. `leave` closes the agents, and lets the work end after the closing has begun. */
  const endsWhile = async (test: string, leave: (letEnd: () => void) => Promise<unknown>) => {
    const begun = new Set<string>();
    const opened = Promise.withResolvers<void>();
    await using server = await startHttpServer(async ({ url = "" }, response) => {
      begun.add(url);
      await opened.promise;
      response.end();
    }, "127.0.0.1");
    const names = namesOf(test);
    for (const name of names) {
      const [way] = name.split("-");
      await ask(name, `${way}?gate=http://127.0.0.1:${server.port}/${name}`);
    }
    await until("all work waits", () => begun.size === names.length, 60_000);
    await leave(opened.resolve);
    for (const name of names) expect((await ask(name)).count, name).to.equal(WRITES);
  };

  before(async () => {
    world = await startAgentWorld();
    host = await world.host("first");
    await deploy("one");
  });
  after(() => world[Symbol.asyncDispose]());

  it("has its last changes after another version was deployed", () =>
    endsWhile("deploy", async (letEnd) => {
      await ask("other");
      await deploy("two");
      // All agents of a process learn of the other version at the same time.
      await until("the other version serves", async () => (await ask("other")).version === "two");
      letEnd();
    }));

  it("has its last changes after a reload", () =>
    endsWhile("reload", async (letEnd) => {
      const keys = namesOf("reload").map((name) => keyOf("works", "Worker", name));
      await Promise.all(keys.map((key) => world.client.call(agent, key, "reload", {})));
      letEnd();
    }));

  it("has its last changes after its host was stopped", () =>
    endsWhile("stop", async (letEnd) => {
      const stopped = host.stop();
      letEnd();
      await stopped;
      await world.host("second");
    }));
});
