import { getEventListeners } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { agent, appEntry } from "../../../../schemas/apps/agent.ts";
import { app } from "../../../../schemas/apps/app.ts";
import { APP_HELD_BYTES_MAX } from "../../../../schemas/apps/limits.ts";
import { AGENT_APP, AGENT_APP_CONFIG } from "../../../../scripts/testing/agent-app.ts";
import {
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../../scripts/testing/agent-world.ts";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { AGENT_CRASHED_TURNS_KEPT_MAX, AGENT_TURN_CRASHES_MAX } from "./crashed-turns.ts";
import { APP_OPERATIONS_MAX } from "./operation-places.ts";
import { processesOfAccountMax } from "./process-places.ts";
import { APP_RESTART_MS } from "./restart-pauses.ts";

const BROKEN = "throw new Error('not today')";

describe("processes of apps", function () {
  this.timeout(240_000);
  let world: AgentWorld;
  let host: AgentHost;
  beforeEach(async () => {
    world = await startAgentWorld();
    host = await world.host("first");
  });
  afterEach(() => world[Symbol.asyncDispose]());

  it("a process whose successor did not start goes on, and ends when another has started", async () => {
    const { processes } = host.agents;
    const app = await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
    const first = await processes.of(app);
    await world.deploy("hooks", BROKEN, AGENT_APP_CONFIG);
    await until("the next version does not start", async () => {
      const outcome = await processes.of(app).then(() => "started", String);
      return outcome.includes("not today");
    });
    expect(first.outdated.aborted).to.equal(false);
    expect(first.process.isEnded).to.equal(false);
    await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
    const third = await until("the third has started", async () => {
      const running = await processes.of(app).catch(() => undefined);
      return running !== first && running;
    });
    expect(third.process.serving.version).to.equal(3);
    await first.process.ended;
    await until("one is left", () => processes.count === 1);
  });

  it("a process that does not start is tried again after a growing pause", async () => {
    const { processes } = host.agents;
    const app = await world.deploy("hooks", BROKEN, AGENT_APP_CONFIG);
    const tookMs: number[] = [];
    const TRIES = 8;
    for (let tries = 0; tries < TRIES; tries++) {
      const since = performance.now();
      expect((await refusalOf(processes.of(app))).code).to.equal("app_broken");
      tookMs.push(performance.now() - since);
    }
    expect(tookMs.at(-1)).to.be.greaterThan(APP_RESTART_MS * 2 ** (TRIES - 3) * 0.9);
  });

  it("a process is used as long as its entry asks to wait, also when another takes its place", async () => {
    const { processes } = host.agents;
    const code = `export default { fetch(request, env, ctx) {
      ctx.waitUntil(Promise.reject(new Error("is printed")));
      ctx.waitUntil(fetch(env.OUTSIDE));
      return new Response("answered");
    } }`;
    const asked: ServerResponse[] = [];
    await using outside = await startHttpServer((_request, response) => void asked.push(response));
    const vars = { OUTSIDE: `http://${outside.address}:${outside.port}` };
    const app = await world.deploy("waits", code, { vars });
    const { process } = await processes.of(app);
    const request = { method: "GET", url: "http://app/", headers: [] };
    expect((await world.client.call(appEntry, app, "request", request)).status).to.equal(200);
    await until("it waits", () => process.users === 1);
    await world.deploy("waits", code, { vars });
    await until("the next has started", async () => (await processes.of(app)).process !== process);
    expect(process.isEnded).to.equal(false);
    expect(process.users).to.equal(1);
    await until("it asks", () => asked.length === 1);
    asked[0]?.end();
    await process.ended;
    expect(process.users).to.equal(0);
  });

  it("agents that have left memory are forgotten by their process", async () => {
    const app = await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
    const { outdated } = await host.agents.processes.of(app);
    const key = keyOf("hooks", "Counter", "a");
    for (let time = 0; time < 5; time++) {
      const request = { method: "GET", url: "http://app/state", headers: [] };
      await world.client.call(agent, key, "request", request);
      await world.client.call(agent, key, "reload", {});
    }
    await until("none listens", () => getEventListeners(outdated, "abort").length === 0);
  });

  it("as many run as may, one that nothing uses gives way, and past that the next is refused", async () => {
    await host.stop();
    host = await world.host("second", { processesMax: 3 });
    const { processes } = host.agents;
    const asked: ServerResponse[] = [];
    await using outside = await startHttpServer((_request, response) => void asked.push(response));
    const vars = { OUTSIDE: `http://${outside.address}:${outside.port}` };
    const code = `export default { fetch: async (request, env) => new Response(await (await fetch(env.OUTSIDE)).text()) }`;
    const apps: string[] = [];
    for (const name of ["one", "two", "three"]) apps.push(await world.deploy(name, code, { vars }));
    const request = { method: "GET", url: "http://app/", headers: [] };
    const call = (at: number) =>
      world.client.call(appEntry, apps[at] ?? "", "request", request, { deadlineMs: 60_000 });
    const first = call(0);
    await until("it is under way", () => asked.length === 1);
    const { process: idle } = await processes.of(apps[1] ?? "");
    expect(processes.count).to.equal(2);
    // The process of the second app is idle, so the third app takes its place.
    const third = call(2);
    await until("it is under way", () => asked.length === 2);
    await idle.ended;
    const { code: refused, message } = await refusalOf(processes.of(apps[1] ?? ""));
    expect([refused, message]).to.deep.equal([
      "busy",
      `Cannot start the app: its host runs ${processesOfAccountMax(3)} of its account`,
    ]);
    for (const response of asked) response.end("done");
    await Promise.all([first, third]);
    await until("there is room again", () =>
      processes.of(apps[1] ?? "").then(
        () => true,
        () => false,
      ),
    );
  });

  it("an account with its share leaves room for others, and a check takes a place too", async () => {
    await host.stop();
    host = await world.host("second", { processesMax: 2 });
    const { processes } = host.agents;
    const asked: ServerResponse[] = [];
    await using outside = await startHttpServer((_request, response) => void asked.push(response));
    const vars = { OUTSIDE: `http://${outside.address}:${outside.port}` };
    const waits = `export default { fetch: async (request, env) => new Response(await (await fetch(env.OUTSIDE)).text()) }`;
    const first = await world.deploy("one", waits, { vars });
    const second = await world.deploy("two", waits, { vars });
    const other = await world.deploy("one", waits, { vars }, "b".repeat(32));
    const request = { method: "GET", url: "http://app/", headers: [] };
    const answer = world.client.call(appEntry, first, "request", request);
    await until("it is under way", () => asked.length === 1);
    const refused = await refusalOf(processes.of(second));
    expect([refused.code, refused.message]).to.deep.equal([
      "busy",
      "Cannot start the app: its host runs 1 of its account",
    ]);
    // The process that checks a version takes a place of the account too.
    const serving = await world.client.call(app, second, "getServing", {});
    expect((await refusalOf(processes.check(second, serving))).code).to.equal("busy");
    await processes.of(other);
    asked[0]?.end("done");
    await answer;
  });

  it("an agent with nothing to do gives way to another, and past those that work the next is refused", async () => {
    await host.stop();
    host = await world.host("second", { agentsMax: 2 });
    const asked: ServerResponse[] = [];
    await using outside = await startHttpServer((_request, response) => void asked.push(response));
    const vars = { OUTSIDE: `http://${outside.address}:${outside.port}` };
    const code = `import { Agent } from "trunkline/agents";
    export class Hooks extends Agent {
      async onRequest(request) {
        const count = (await this.ctx.storage.get("count") ?? 0) + 1;
        await this.ctx.storage.put("count", count);
        if (request.method === "POST") await fetch(this.env.OUTSIDE);
        return new Response(String(count));
      }
    }
    export default {};`;
    const agents = [{ binding: "Hooks", class_name: "Hooks" }];
    const { process } = await host.agents.processes.of(
      await world.deploy("many", code, { vars, agents }),
    );
    const ask = (name: string, method = "GET") => {
      const request = { method, url: "http://app/", headers: [] };
      return world.client.call(agent, keyOf("many", "Hooks", name), "request", request);
    };
    for (const count of ["1", "2"]) {
      for (const name of ["a", "b", "c", "d"]) {
        expect((await ask(name)).body).to.deep.equal({ text: count });
        expect(process.users).to.be.at.most(2);
      }
    }
    const working = [ask("a", "POST"), ask("b", "POST")];
    await until("both are at work", () => asked.length === 2);
    const { code: refused, message } = await refusalOf(ask("c"));
    expect(refused).to.equal("busy");
    expect(message).to.match(/its app has 2 at work, as many as the limit of open files/);
    for (const response of asked) response.end("done");
    await Promise.all(working);
    expect((await ask("c")).body).to.deep.equal({ text: "3" });
  });

  it("a turn is tried as often as it may be after its process ended under it, and no more", () => {
    const { processes } = host.agents;
    for (let times = 1; times < AGENT_TURN_CRASHES_MAX; times++) {
      expect(processes.crashed("turn")).to.equal(false);
    }
    expect(processes.crashed("turn")).to.equal(true);
    // The oldest crashes are evicted.
    for (let at = 1; at < AGENT_CRASHED_TURNS_KEPT_MAX; at++) processes.crashed(`other ${at}`);
    expect(processes.crashed("turn")).to.equal(true);
    for (let at = 1; at <= AGENT_CRASHED_TURNS_KEPT_MAX; at++) processes.crashed(`more ${at}`);
    expect(processes.crashed("turn")).to.equal(false);
  });

  it("as many operations of a process are under way as may be, and the others wait", async () => {
    const asked: ServerResponse[] = [];
    await using outside = await startHttpServer((_request, response) => void asked.push(response));
    const vars = { OUTSIDE: `http://${outside.address}:${outside.port}` };
    const code = `export default { async fetch(request, env) {
      const all = Array.from({ length: ${APP_OPERATIONS_MAX + 1} }, () => fetch(env.OUTSIDE));
      return Response.json((await Promise.all(all)).map(({ status }) => status));
    } }`;
    const app = await world.deploy("many", code, { vars });
    const request = { method: "GET", url: "http://app/", headers: [] };
    const told = world.client.call(appEntry, app, "request", request, { deadlineMs: 60_000 });
    await until("as many are under way", () => asked.length === APP_OPERATIONS_MAX);
    asked[0]?.end();
    await until("the last one too", () => asked.length === APP_OPERATIONS_MAX + 1);
    for (const response of asked) response.end();
    expect((await told).status).to.equal(200);
  });

  it("agents can fetch while as many requests as may wait for their answers", async () => {
    const asked: ServerResponse[] = [];
    await using outside = await startHttpServer((_request, response) => void asked.push(response));
    const code = `import { Agent, routeAgentRequest } from "trunkline/agents";
    export class Caller extends Agent {
      async onRequest() { return new Response(String((await fetch(this.env.OUTSIDE)).status)); }
    }
    export default { fetch: routeAgentRequest };`;
    const app = await world.deploy("routes", code, {
      vars: { OUTSIDE: `http://${outside.address}:${outside.port}` },
      agents: [{ binding: "Caller", class_name: "Caller" }],
    });
    const answers = Array.from({ length: APP_OPERATIONS_MAX }, (_, at) => {
      const request = { method: "GET", url: `http://app/agents/caller/a${at}`, headers: [] };
      return world.client.call(appEntry, app, "request", request, { deadlineMs: 60_000 });
    });
    // No fetch is answered before all are there, so each request still waits for its agent.
    await until("all agents fetch", () => asked.length === APP_OPERATIONS_MAX);
    for (const response of asked) response.end();
    for (const { status } of await Promise.all(answers)) expect(status).to.equal(200);
  });

  it("the kernel ends a process before its host, if it has no memory left", async function () {
    if (process.platform !== "linux") this.skip();
    const app = await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
    const { pid } = (await host.agents.processes.of(app)).process;
    await until("the kernel knows", async () => {
      return (await readFile(`/proc/${pid}/oom_score_adj`, "utf8")) === "1000\n";
    });
  });

  it("an unused process ends after a while, and the next request starts another", async () => {
    await host.stop();
    host = await world.host("second", { idleMs: 0 });
    const { processes } = host.agents;
    const app = await world.deploy("rests", `export default { fetch: () => new Response("here") }`);
    const request = { method: "GET", url: "http://app/", headers: [] };
    const call = () => world.client.call(appEntry, app, "request", request);
    expect((await call()).status).to.equal(200);
    const { process: first } = await processes.of(app);
    await first.ended;
    await until("none is left", () => processes.count === 0);
    expect((await call()).status).to.equal(200);
  });

  it("an operation past a bound of its process hears which bound that is", async () => {
    const code = `export default {
      fetch: () => fetch("http://outside.example/").then(String, ({ cause }) => new Response(cause.message)),
    }`;
    const app = await world.deploy("asks", code);
    const { process } = await host.agents.processes.of(app);
    process.held.hold(APP_HELD_BYTES_MAX);
    const request = { method: "GET", url: "http://app/", headers: [] };
    const { body } = await world.client.call(appEntry, app, "request", request);
    process.held.release(APP_HELD_BYTES_MAX);
    const text = `Cannot begin: ${APP_HELD_BYTES_MAX} bytes of what the app asked for are under way`;
    expect(body).to.deep.equal({ text });
  });

  describe("whose folder something outside has removed", () => {
    const request = { method: "GET", url: "http://app/", headers: [] };

    it("start again in another, for agents and entries, and no app is blamed", async () => {
      const { processes } = host.agents;
      const app = await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
      const name = `Counter`;
      expect(AGENT_APP_CONFIG.agents.map((one) => one.class_name)).to.include(name);
      const call = (agentName: string) =>
        world.client.call(agent, keyOf("hooks", name, agentName), "request", request);
      expect((await call("before")).status).to.be.below(500);
      const { process: first } = await processes.of(app);
      await rm(processes.folder, { recursive: true });
      const answers = await Promise.all(["before", "after", "another"].map(call));
      for (const { status } of answers) expect(status).to.be.below(500);
      await first.ended;
      const { process: second } = await processes.of(app);
      expect(second).to.not.equal(first);
      expect((await call("after")).status).to.be.below(500);
    });

    it("are missing in /healthz while none can start, and no longer when one can", async () => {
      const { processes } = host.agents;
      expect(processes.missing()).to.deep.equal([]);
      await rm(processes.folder, { recursive: true });
      await writeFile(processes.folder, "something else");
      const app = await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
      const refusal = await refusalOf(processes.of(app));
      expect(refusal.code).to.equal("unavailable");
      expect(refusal.message).to.contain("its host has no folder for processes");
      await until("it is missing", () => processes.missing().includes("a process for apps"));
      await rm(processes.folder);
      await until("it is there", () => processes.missing().length === 0);
      await processes.of(app);
    });
  });
});
