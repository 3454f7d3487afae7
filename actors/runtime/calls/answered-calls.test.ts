import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { EFFECTLESS_CLIENTS_MAX } from "../../../schemas/limits.ts";
import { ANSWERS_KEPT_CHARS_MAX, AnsweredCalls } from "./answered-calls.ts";

const id = (number: number, settled = 1, client = "c") => ({ client, number, settled });

describe("AnsweredCalls", () => {
  it("find() returns the kept answer until the client settles the call, and `dropped` after that", () => {
    const calls = new AnsweredCalls();
    expect(calls.find(id(1))).to.equal(undefined);
    calls.keep(id(1), { reply: "1" });
    const refusal = new ActorError("conflict", "Cannot say: no");
    calls.keep(id(2), { refusal });
    for (let times = 0; times < 2; times++) {
      expect(calls.find(id(1))).to.deep.equal({ reply: "1" });
      expect(calls.find(id(2))).to.deep.equal({ refusal });
    }
    expect(calls.find(id(1, 1, "other"))).to.equal(undefined);
    expect(calls.find(id(3, 2))).to.equal(undefined);
    expect(calls.find(id(1))).to.deep.equal({ dropped: true });
    expect(calls.find(id(2))).to.deep.equal({ refusal });
  });

  it("keep() keeps no temporary refusal, nor the answer to a call that is settled or has no number", () => {
    const calls = new AnsweredCalls();
    for (const code of ["busy", "unavailable"] as const) {
      calls.keep(id(1), { refusal: new ActorError(code, "Cannot say now") });
      expect(calls.find(id(1))).to.equal(undefined);
    }
    calls.keep(undefined, { reply: "1" });
    expect(calls.find(undefined)).to.equal(undefined);
    calls.find(id(5, 4));
    calls.keep(id(3), { reply: "3" });
    expect(calls.find(id(3))).to.deep.equal({ dropped: true });
  });

  it("keep() drops the oldest answers past ANSWERS_KEPT_CHARS_MAX, of any client", () => {
    const calls = new AnsweredCalls();
    const half = "x".repeat(ANSWERS_KEPT_CHARS_MAX / 2 - 100);
    calls.keep(id(1), { reply: half });
    calls.keep(id(1, 1, "other"), { reply: half });
    expect(calls.find(id(1))).to.deep.equal({ reply: half });
    calls.keep(id(2), { reply: "" });
    expect(calls.find(id(1))).to.equal(undefined);
    expect(calls.find(id(1, 1, "other"))).to.deep.equal({ reply: half });
    calls.keep(id(3), { reply: `${half}${half}${"x".repeat(101)}` });
    expect(calls.find(id(3))).to.equal(undefined);
    expect(calls.find(id(2))).to.deep.equal({ reply: "" });
    // Settled answers leave room again.
    calls.find(id(9, 9));
    calls.keep(id(9), { reply: half });
    expect(calls.find(id(1, 1, "other"))).to.deep.equal({ reply: half });
  });

  it("remembers EFFECTLESS_CLIENTS_MAX clients, and forgets all at one more", () => {
    const calls = new AnsweredCalls();
    for (let at = 0; at < EFFECTLESS_CLIENTS_MAX; at++) calls.find(id(1, 1, String(at)));
    calls.keep(id(1, 1, "0"), { reply: "1" });
    expect(calls.find(id(1, 1, "0"))).to.deep.equal({ reply: "1" });
    calls.find(id(1, 1, "more"));
    expect(calls.find(id(1, 1, "0"))).to.equal(undefined);
  });
});
