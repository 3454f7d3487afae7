import { expect } from "chai";
import { shardGivesMax } from "../../../schemas/limits.ts";
import { systemClock } from "../lib/clock.ts";
import { GiveTurns } from "./give-turns.ts";

const SHARDS = 64;

describe("GiveTurns", () => {
  it("run() starts few at the same time, and others when the turns of slow ones are over", async () => {
    const waits: (() => void)[] = [];
    const wait = () => new Promise<void>((resolve) => void waits.push(resolve));
    const turns = new GiveTurns(SHARDS, { ...systemClock, wait });
    const gates = Array.from({ length: SHARDS }, () => Promise.withResolvers<boolean>());
    let begun = 0;
    const given = gates.map(({ promise }) =>
      turns.run(() => {
        begun += 1;
        return promise;
      }),
    );
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    await settle();
    const few = shardGivesMax(SHARDS);
    expect(begun).to.equal(few);
    for (const end of waits.splice(0)) end();
    await settle();
    expect(begun).to.equal(2 * few);
    for (const [index, { resolve }] of gates.entries()) resolve(index > 0);
    const [first, ...others] = await Promise.all(given);
    expect([first, others.every(Boolean)]).to.deep.equal([false, true]);
  });

  it("run() ends at once if there is nothing to give any more", async () => {
    const turns = new GiveTurns(SHARDS, { ...systemClock, wait: () => new Promise(() => {}) });
    expect(await turns.run(() => undefined)).to.equal(true);
  });
});
