import { expect } from "chai";
import { JSON_FAULT_CHARS_MAX, JSON_FAULTS_MAX } from "../../schemas/crawl-limits.ts";
import { JsonChecker } from "./json-checker.ts";

describe("JsonChecker", function () {
  this.timeout(20_000);
  const checker = new JsonChecker({ timeoutMs: 2_000 });
  after(() => checker.close());

  const check = (schema: object, value: unknown) =>
    checker.check({ schema: JSON.stringify(schema), text: JSON.stringify(value) });

  it("check() gives a valid answer without white space", async () => {
    const schema = JSON.stringify({ type: "object" });
    expect(await checker.check({ schema, text: ' { "a" : [ 1, null ] }\n' })).to.deep.equal({
      kind: "valid",
      json: '{"a":[1,null]}',
    });
    expect(await checker.check({ schema })).to.have.property("kind", "valid");
  });

  it("check() names what is wrong, a bounded number of times", async () => {
    const schema = { type: "array", items: { enum: ["a", "b"] } };
    const verdict = await check(schema, ["a", "c", ..."x".repeat(100)]);
    if (verdict.kind !== "invalid") throw new Error(verdict.kind);
    expect(verdict.faults).to.match(/^\/1 must be equal to one of the allowed values .*"a","b"/);
    expect(verdict.faults.split("; ")).to.have.length(JSON_FAULTS_MAX);
    const long = await check({ enum: ["x".repeat(10_000)] }, 1);
    expect("faults" in long && long.faults).to.have.length(JSON_FAULT_CHARS_MAX + 1);
  });

  it("check() knows the drafts people use, and words it does not know", async () => {
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

  it("check() tells what is no JSON, and what is no schema", async () => {
    const schema = JSON.stringify({ type: "object" });
    expect(await checker.check({ schema, text: "I will not" })).to.have.property("kind", "invalid");
    for (const bad of [
      { type: "text" },
      { $ref: "#/nowhere" },
      { pattern: "(" },
      { $async: true },
    ]) {
      expect(await check(bad, "a"), JSON.stringify(bad)).to.have.property("kind", "bad_schema");
    }
  });

  it("check() goes on after a schema that takes for ever, and after what is too deep", async () => {
    const slow = check({ type: "string", pattern: "^(a+)+$" }, `${"a".repeat(50)}!`);
    const behind = check({ type: "string" }, "a");
    const verdict = await slow;
    expect(verdict.kind).to.equal("bad_schema");
    expect("reason" in verdict && verdict.reason).to.contain("took longer than 2000 ms");
    expect(await behind).to.have.property("kind", "valid");
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    const recursive = JSON.stringify({ items: { $ref: "#" } });
    const verdicts = await checker.check({ schema: recursive, text: deep });
    expect(verdicts.kind).to.be.oneOf(["invalid", "bad_schema"]);
    expect(await check({ type: "string" }, "a")).to.have.property("kind", "valid");
  });

  it("check() refuses when it is closed", async () => {
    const closed = new JsonChecker();
    await closed.close();
    const error = await closed.check({ schema: "{}" }).catch((thrown: unknown) => thrown);
    expect(error).to.be.an("error");
  });
});
