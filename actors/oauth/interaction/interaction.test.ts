import { expect } from "chai";
import { INTERACTION_BYTES_MAX } from "../../../schemas/oauth/interaction.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { interactionActor } from "./interaction.ts";

const browserHash = "1".repeat(64);
const put = { browserHash, record: { step: 1 }, expiresAt: 2_000 };
const { state } = runHandler(interactionActor, "put", interactionActor.initial, put, {
  now: 1_000,
});

describe("interaction", () => {
  it("get() returns the interaction to the browser that began it, until it expires", () => {
    const get = (hash: string, now: number) => () =>
      runHandler(interactionActor, "get", state, { browserHash: hash }, { now }).reply.record;
    expect(get(browserHash, 1_999)()).to.deep.equal({ step: 1 });
    expect(refusal(get(browserHash, 2_000)).code).to.equal("not_found");
    expect(refusal(get("2".repeat(64), 1_000)).code).to.equal("not_found");
  });

  it("put() updates the interaction in its browser without extending its lifetime", () => {
    const next = { ...put, record: { step: 2 }, expiresAt: 9_000 };
    const later = runHandler(interactionActor, "put", state, next, { now: 1_500 });
    expect(later.state).to.include({ expiresAt: 2_000 });
    const other = { ...next, browserHash: "2".repeat(64) };
    const taken = () => runHandler(interactionActor, "put", state, other, { now: 1_500 });
    expect(refusal(taken).code).to.equal("not_found");
    const over = () =>
      runHandler(interactionActor, "put", interactionActor.initial, put, { now: 2_000 });
    expect(refusal(over).code).to.equal("not_found");
  });

  it("end() and expire() delete the interaction, and repeated change nothing", () => {
    for (const message of ["end", "expire"] as const) {
      expect(runHandler(interactionActor, message, state, {}).forgotten).to.equal(true);
      const again = runHandler(interactionActor, message, interactionActor.initial, {});
      expect(again.changed).to.equal(false);
    }
  });

  it("a record is accepted up to its size limit", () => {
    const { input } = interactionActor.contract.messages.put;
    const asked = (bytes: number) =>
      input.safeParse({ ...put, record: { x: "x".repeat(bytes - '{"x":""}'.length) } }).success;
    expect([asked(INTERACTION_BYTES_MAX), asked(INTERACTION_BYTES_MAX + 1)]).to.deep.equal([
      true,
      false,
    ]);
  });
});
