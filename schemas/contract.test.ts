import { expect } from "chai";
import { z } from "zod";
import { defineContract, defineTasks, envelope } from "./contract.ts";

const input = z.object({ by: z.int() });

describe("defineContract()", () => {
  it("refuses a kind that is not kebab-case, or that the runtime uses itself", () => {
    for (const kind of ["counter", "crawl-job", "oauth2-client"]) {
      expect(defineContract({ kind, messages: {} }).kind).to.equal(kind);
    }
    for (const kind of ["", "Counter", "a_b", "a.b", "-a", "a-", "2a", "a b", "é"]) {
      expect(() => defineContract({ kind, messages: {} }), kind).to.throw("not kebab-case");
    }
    for (const kind of ["lease", "epoch", "outbox", "remind", "fired", "journal", "checkpoint"]) {
      expect(() => defineContract({ kind, messages: {} }), kind).to.throw("is reserved");
      expect(() => defineTasks({ kind, lanes: [], messages: {} }), kind).to.throw("is reserved");
    }
  });
});

describe("envelope()", () => {
  it("addresses an actor, or the lane of a task", () => {
    const counter = defineContract({ kind: "counter", messages: { add: { input } } });
    expect(envelope(counter, "a", "add", { by: 1 })).to.deep.equal({
      to: "actor",
      kind: "counter",
      key: "a",
      message: "add",
      input: { by: 1 },
    });
    const tasks = defineTasks({
      kind: "sum",
      lanes: ["fast"],
      messages: { add: { lane: "fast", input } },
    });
    expect(envelope(tasks, "a", "add", { by: 1 })).to.deep.include({ to: "worker", lane: "fast" });
    const unknown = "constructor" as "add";
    expect(() => envelope(tasks, "a", unknown, { by: 1 })).to.throw("sum has no constructor");
  });
});
