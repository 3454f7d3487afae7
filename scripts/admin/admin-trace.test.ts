import { expect } from "chai";
import { Registry } from "prom-client";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { inRequest, recordStep } from "../../actors/runtime/lib/trace.ts";
import { StepRecorder } from "../../actors/runtime/observe/request-steps.ts";
import { startWorld } from "../testing/actor-world.ts";
import { trunkline } from "../testing/command-line.ts";
import { counter, counterActor } from "../testing/counter.ts";
import { until } from "../testing/until.ts";
import { adminTrace } from "./admin-trace.ts";
import { UsageError } from "./usage-error.ts";

describe("admin trace", function () {
  this.timeout(120_000);

  it("prints calls and mail of a request with their outcome, the earliest first", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    await world.host();
    const recorder = new StepRecorder({ bus: world.bus, clock, registry: new Registry() });
    const run = (...parameters: string[]) =>
      trunkline(["admin", "trace", ...parameters], world.url);
    expect(await run("ours")).to.include({
      code: 1,
      stderr:
        'Cannot find request "ours": there are no steps under this id; they are kept for three days at most, and of about the last 60,000 requests\n',
    });
    const at = Date.now();
    recordStep({
      ...{ run: "a1", request: "ours", way: "request", name: "GET /x", at, ms: 12.34 },
      ...{ status: 404, error: "not_found" },
    });
    await inRequest("a1", "ours", async () => {
      await world.client.call(counter, "k", "get", {});
      await world.client.send(counter, "k", "stumble", { times: -1 });
    });
    await inRequest("b2", "another", () => world.client.call(counter, "other", "get", {}));
    let lines: string[] = [];
    await until("the mail", async () => {
      lines = (await run("ours")).stdout.trimEnd().split("\n");
      return lines.length === 5;
    });
    recorder.stop();
    expect(lines[0]).to.equal(`ours at ${new Date(at).toISOString()}`);
    expect(lines[1]).to.match(/^AFTER +TOOK +WAY +WHAT +OUTCOME$/);
    expect(lines[2]).to.match(/^0.0 ms +12.3 ms +request +GET \/x +404 not_found$/);
    expect(lines[3]).to.match(/^[\d.]+ ms +[\d.]+ ms +call +counter get k +ok$/);
    expect(lines[4]).to.match(/^[\d.]+ ms +[\d.]+ ms +mail +counter stumble k +conflict$/);
  });

  it("escapes control characters of log lines and errors", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    const recorder = new StepRecorder({ bus: world.bus, clock, registry: new Registry() });
    recordStep({
      ...{ run: "a1", request: "steered", way: "log", name: "page \u001b[2J\u009b\nGET /forged" },
      ...{ at: Date.now(), ms: 0, level: "warn", error: "\u001b]0;title\u0007" },
    });
    recorder.stop();
    let shown = "";
    await until("the line", async () => {
      shown = (await trunkline(["admin", "trace", "steered"], world.url)).stdout;
      return shown !== "";
    });
    expect(shown).to.include("page \\u001b[2J\\u009b\\u000aGET /forged");
    expect(shown).to.include("warn \\u001b]0;title\\u0007\n");
    expect(shown).to.not.match(/(?!\n)\p{Cc}/u);
  });

  for (const parameters of [[], ["a", "b"], ["a b"], ["x".repeat(129)]]) {
    it(`refuses ${JSON.stringify(parameters).slice(0, 20)} before it asks the bus`, async () => {
      const failure = await adminTrace(parameters, {}).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(UsageError);
    });
  }
});
