import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { ServiceCounts } from "./service-counts.ts";

const known = new Map([
  ["counter", new Set(["get", "increment"])],
  ["echo", new Set(["say"])],
]);

describe("ServiceCounts", () => {
  it("count() adds up requests, errors and time of each message", () => {
    const counts = new ServiceCounts(known);
    counts.count("counter", "get", { reply: "1" }, 2);
    counts.count("counter", "get", { refusal: new ActorError("busy", "Cannot: full") }, 3);
    counts.count("echo", "say", { reply: "1" }, 5);
    expect(of(counts, "counter", "get")).to.deep.equal({
      kind: "counter",
      message: "get",
      requests: 2,
      errors: 1,
      lastError: "busy: Cannot: full",
      ms: 5,
    });
    expect(of(counts, "echo", "say")).to.deep.include({ requests: 1, errors: 0, lastError: "" });
    expect(of(counts, "counter", "increment")).to.deep.include({ requests: 0 });
  });

  it("fail() adds an error but no request, with the text of the refusal or fault", () => {
    const counts = new ServiceCounts(known);
    counts.fail("counter", "get", new ActorError("conflict", "Cannot: exists"));
    expect(of(counts, "counter", "get")).to.deep.include({
      requests: 0,
      errors: 1,
      lastError: "conflict: Cannot: exists",
    });
    counts.fail("counter", "get", new Error("broken"));
    expect(of(counts, "counter", "get")).to.deep.include({ errors: 2, lastError: "broken" });
  });

  it("all() lists known messages in the order of their names, and the rest last", () => {
    const counts = new ServiceCounts(known);
    counts.count("stranger", "get", { reply: "1" }, 1);
    counts.count("echo", "say", { reply: "1" }, 1);
    expect(counts.all().map(({ kind, message }) => `${kind}.${message}`)).to.deep.equal([
      "counter.get",
      "counter.increment",
      "echo.say",
      "(unknown).(unknown)",
    ]);
  });

  it("count() omits messages that were not answered here", () => {
    const counts = new ServiceCounts(known);
    counts.count("counter", "get", { misdirected: true }, 2);
    counts.count("counter", "get", { dropped: true }, 2);
    expect(of(counts, "counter", "get")?.requests).to.equal(0);
  });

  it("count() puts all unknown names into one entry", () => {
    const counts = new ServiceCounts(known);
    for (let i = 0; i < 1_000; i++) counts.count(`kind${i}`, `message${i}`, { reply: "1" }, 1);
    counts.count("counter", "constructor", { reply: "1" }, 1);
    expect(counts.all()).to.have.length(4);
    expect(of(counts, "(unknown)", "(unknown)")?.requests).to.equal(1_001);
  });
});

const of = (counts: ServiceCounts, kind: string, message: string) =>
  counts.all().find((one) => one.kind === kind && one.message === message);
