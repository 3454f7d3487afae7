import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { JSON_CHECK_HEAP_MIB_MAX, JSON_CHECK_MS, JsonChecker } from "./json-checker.ts";
import type { JsonVerdict } from "./json-checker-thread.ts";
import { JSON_FAULT_CHARS_MAX, JSON_FAULTS_MAX } from "./json-checker-thread.ts";

/** Time that two consecutive lines of a test may take. */
const SOON_MS = 4_000;
const caller = { account: "a", signal: new AbortController().signal };
const STRING = JSON.stringify({ type: "string" });
/** A check that never ends. */
const ENDLESS = {
  schema: JSON.stringify({ type: "string", pattern: "^(a+)+$" }),
  text: `"${"a".repeat(50)}!"`,
};

describe("JsonChecker", function () {
  this.timeout(60_000);
  const checker = new JsonChecker({ timeoutMs: 30_000 });
  after(() => checker.close());

  const check = (schema: object, value: unknown) =>
    checker.check({ schema: JSON.stringify(schema), text: JSON.stringify(value) }, caller);

  it("check() returns a valid answer without white space", async () => {
    const schema = JSON.stringify({ type: "object" });
    expect(await checker.check({ schema, text: ' { "a" : [ 1, null ] }\n' }, caller)).to.deep.equal(
      {
        kind: "valid",
        json: '{"a":[1,null]}',
      },
    );
    expect(await checker.check({ schema }, caller)).to.have.property("kind", "valid");
  });

  it("check() lists errors up to a limit", async () => {
    const schema = { type: "array", items: { enum: ["a", "b"] } };
    const verdict = await check(schema, ["a", "c", ..."x".repeat(100)]);
    if (verdict.kind !== "invalid") throw new Error(verdict.kind);
    expect(verdict.faults).to.match(/^\/1 must be equal to one of the allowed values .*"a","b"/);
    expect(verdict.faults.split("; ")).to.have.length(JSON_FAULTS_MAX);
    const long = await check({ enum: ["x".repeat(10_000)] }, 1);
    expect("faults" in long && long.faults).to.have.length(JSON_FAULT_CHARS_MAX + 1);
  });

  it("check() supports the common drafts, and ignores unknown keywords", async () => {
    const tuple = {
      $schema: "http://json-schema.org/draft-07/schema#",
      items: [{ type: "number" }],
    };
    expect(await check(tuple, ["a"])).to.have.property("kind", "invalid");
    const modern = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      prefixItems: [{ type: "number" }],
      example: 1,
    };
    expect(await check(modern, ["a"])).to.have.property("kind", "invalid");
    expect(await check({ type: "string", format: "made-up" }, "a")).to.have.property(
      "kind",
      "valid",
    );
  });

  it("check() reports invalid JSON and invalid schemas", async () => {
    const schema = JSON.stringify({ type: "object" });
    expect(await checker.check({ schema, text: "I will not" }, caller)).to.have.property(
      "kind",
      "invalid",
    );
    for (const bad of [
      { type: "text" },
      { $ref: "#/nowhere" },
      { pattern: "(" },
      { $async: true },
    ]) {
      expect(await check(bad, "a"), JSON.stringify(bad)).to.have.property("kind", "bad_schema");
    }
  });

  it("check() works again after an endless schema and a too deeply nested value", async () => {
    const clock = new SkippingClock();
    const timeoutMs = 60_000;
    const hasty = new JsonChecker({ clock, timeoutMs });
    const slow = hasty.check(ENDLESS, caller);
    const behind = hasty.check({ schema: STRING, text: '"a"' }, caller);
    await until("it is at it", () => clock.isAwaited(timeoutMs));
    clock.skip(timeoutMs);
    const verdict = await slow;
    expect(verdict.kind).to.equal("bad_schema");
    expect("reason" in verdict && verdict.reason).to.contain("took longer than 60000 ms");
    expect(await behind).to.have.property("kind", "valid");
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    const recursive = JSON.stringify({ items: { $ref: "#" } });
    const verdicts = await hasty.check({ schema: recursive, text: deep }, caller);
    expect(verdicts.kind).to.be.oneOf(["invalid", "bad_schema"]);
    const next = await hasty.check({ schema: STRING, text: '"a"' }, caller);
    expect(next).to.have.property("kind", "valid");
    await hasty.close();
  });

  it("check() stops a schema after JSON_CHECK_MS", async () => {
    const clock = new SkippingClock();
    const patient = new JsonChecker({ clock });
    let verdict: JsonVerdict | undefined;
    const checked = patient.check(ENDLESS, caller).then((given) => {
      verdict = given;
    });
    await until("it is at it", () => clock.isAwaited(JSON_CHECK_MS));
    clock.skip(JSON_CHECK_MS - SOON_MS);
    await turn();
    expect(verdict).to.equal(undefined);
    clock.skip(SOON_MS);
    await checked;
    const reason = `checking an answer against it took longer than ${JSON_CHECK_MS} ms`;
    expect(verdict).to.deep.equal({ kind: "bad_schema", reason });
    await patient.close();
  });

  it("check() serves accounts in turn", async () => {
    const clock = new SkippingClock();
    const timeoutMs = 60_000;
    const shared = new JsonChecker({ clock, timeoutMs });
    const order: string[] = [];
    const named = (name: string) => () => order.push(name);
    const hostile = ["a1", "a2", "a3"].map((name) =>
      shared.check(ENDLESS, caller).then(named(name), named(name)),
    );
    const other = { ...caller, account: "b" };
    const checked = shared.check({ schema: STRING, text: '"b"' }, other).then(named("b1"));
    await until("the first check runs", () => clock.isAwaited(timeoutMs));
    clock.skip(timeoutMs);
    await checked;
    expect(order.join(" ")).to.equal("a1 b1");
    await shared.close();
    await Promise.all(hostile);
  });

  it("check() ends when its signal aborts: while it runs, while it waits, before it starts", async () => {
    const shared = new JsonChecker({ timeoutMs: 60_000 });
    const leaving = new AbortController();
    const gone = new Error("gone");
    const left = { ...caller, signal: leaving.signal };
    const both = [shared.check(ENDLESS, left), shared.check(ENDLESS, left)];
    const ended = Promise.allSettled(both);
    const behind = shared.check({ schema: STRING, text: '"a"' }, caller);
    leaving.abort(gone);
    const reasons = (await ended).map((one) => one.status === "rejected" && one.reason);
    const late = await shared.check(ENDLESS, left).catch((error: unknown) => error);
    expect([...reasons, late]).to.deep.equal([gone, gone, gone]);
    expect(await behind).to.have.property("kind", "valid");
    await shared.close();
  });

  it("check() limits its memory to JSON_CHECK_HEAP_MIB_MAX", async () => {
    const patient = new JsonChecker({ timeoutMs: 120_000 });
    // Each fault takes some 270 bytes.
    const faultsOfValue = JSON_CHECK_HEAP_MIB_MAX * 2_000;
    const zeros = JSON.stringify(Array(faultsOfValue).fill(0));
    const schema = (times: number) =>
      JSON.stringify({ items: { allOf: Array(times).fill({ type: "string" }) } });
    const within = await patient.check({ schema: schema(1), text: zeros }, caller);
    expect(within.kind).to.equal("invalid");
    const past = await patient.check({ schema: schema(8), text: zeros }, caller);
    expect(past.kind).to.equal("bad_schema");
    expect("reason" in past && past.reason).to.contain("memory");
    await patient.close();
  }).timeout(120_000);

  it("check() refuses calls after close()", async () => {
    const closed = new JsonChecker();
    await closed.close();
    const late = closed.check({ schema: "{}" }, caller);
    const error = await late.catch((thrown: unknown) => thrown);
    expect(error).to.be.an("error");
  });
});
