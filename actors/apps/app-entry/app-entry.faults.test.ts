import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import pino from "pino";
import { appEntry, type EntryRequest } from "../../../schemas/apps/agent.ts";
import {
  type AgentHost,
  type AgentWorld,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { answerOn } from "../../runtime/bus/answer.ts";

/** Calls a server outside for each request, and continues when that server has answered. */
const CODE = `
export default {
  async fetch(request, env) {
    const answer = await fetch(env.OUTSIDE + new URL(request.url).pathname, { method: request.method });
    const { pathname } = new URL(request.url);
    if (pathname === "/time") for (;;);
    const kept = [];
    if (pathname === "/memory") for (;;) kept.push({ text: Math.random().toString() });
    return new Response(request.method === "HEAD" ? null : await answer.text());
  },
};
`;

describe("app-entry", function () {
  this.timeout(120_000);
  let world: AgentWorld;
  let outside: Server;
  let app: string;
  let hosts: AgentHost[];
  let asked: ServerResponse[];
  beforeEach(async () => {
    asked = [];
    outside = createServer((_request, response) => void asked.push(response));
    await once(outside.listen(0, "127.0.0.1"), "listening");
    world = await startAgentWorld();
    const vars = { OUTSIDE: `http://127.0.0.1:${(outside.address() as AddressInfo).port}` };
    hosts = [await world.host("first")];
    app = await world.deploy("hooks", CODE, { vars });
  });
  afterEach(async () => {
    for (const response of asked) response.destroy();
    await world[Symbol.asyncDispose]();
    await new Promise((resolve) => outside.close(resolve));
  });

  const call = (method: string, path = "/act", permit?: EntryRequest["permit"]) => {
    const request = { method, url: `http://app${path}`, headers: [], ...(permit && { permit }) };
    return world.client.call(appEntry, app, "request", request, { deadlineMs: 50_000 });
  };

  it("a request ends at the host that began it, although the host hands over", async () => {
    hosts.push(await world.host("second"));
    const told = call("POST");
    await until("it is under way", () => asked.length === 1);
    const holder = hosts.find(({ agents }) => agents.processes.count > 0);
    const stopped = holder?.stop();
    await until("all else is the other's", () => holder?.host.placement.openShards === 1);
    asked[0]?.end("done");
    expect((await told).body).to.deep.equal({ text: "done" });
    await stopped;
    expect(asked).to.have.length(1);
  });

  it("a request that may have had an effect is not run again when its process ends", async () => {
    for (const [method, runs] of [
      ["POST", 1],
      ["GET", 2],
    ] as const) {
      asked.length = 0;
      const told = call(method);
      const failed = method === "POST" ? refusalOf(told) : undefined;
      await until("it is under way", () => asked.length === 1);
      const running = await hosts[0]?.agents.processes.of(app);
      process.kill(running?.process.pid ?? 0, "SIGKILL");
      if (failed) {
        expect(await failed).to.include({ code: "app_failed" });
      } else {
        await until("it is under way again", () => asked.length === 2);
        asked[1]?.end("done");
        expect((await told).body).to.deep.equal({ text: "done" });
      }
      expect(asked).to.have.length(runs);
    }
  });

  it("a request runs only when its gateway has permitted that run, whatever answer is lost", async () => {
    const { bus } = world.world;
    const runs: string[] = [];
    const stop = answerOn({ bus, logger: pino({ enabled: false }) }, "begun.test.1", (run) => {
      runs.push(run);
      // The answer to the first permission request is lost, as if a server failed.
      if (runs.length === 1) return new Promise(() => {});
      return runs.length === 2 ? "permitted" : "refused";
    });
    try {
      const told = call("POST", "/act", { subject: "begun.test.1" });
      await until("the host asks", () => runs.length === 1);
      // The process runs already, because the host starts it before it requests the permission.
      const running = await hosts[0]?.agents.processes.of(app);
      expect(running?.process.isEnded).to.equal(false);
      expect(asked).to.have.length(0);
      await until("the host asks again, and the code has it", () => asked.length === 1);
      asked[0]?.end("done");
      expect((await told).body).to.deep.equal({ text: "done" });
      expect(new Set(runs)).to.have.property("size", 1);
      const again = await refusalOf(call("POST", "/act", { subject: "begun.test.1" }));
      expect(again.code).to.equal("may_have_run");
      expect(asked).to.have.length(1);
    } finally {
      stop();
    }
  });

  for (const [path, bound] of [
    ["/time", /code held it for 10000 ms|it has not answered for 30000 ms/],
    ["/memory", /its objects take more than 256 MB of memory|it takes more than 768 MB/],
  ] as const) {
    it(`a GET whose process was ended at a bound is not run again, and its caller hears which: ${path}`, async () => {
      const told = refusalOf(call("GET", path));
      await until("it is under way", () => asked.length === 1);
      asked[0]?.end("go on");
      const { code, message } = await told;
      expect(code).to.equal("app_failed");
      expect(message).to.match(bound);
      // The message is one sentence, and not a backtrace with paths of the host.
      expect(message).to.not.match(/0x|\n|\/(?!s)/);
      expect(asked).to.have.length(1);
      const ended = world.log.filter(({ msg }) => msg === "process of an app ended");
      expect(ended).to.have.length(1);
    });
  }
});
