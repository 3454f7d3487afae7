import { expect } from "chai";
import { ActorError } from "../../schemas/errors.ts";
import { SMALL_BODY_BYTES_MAX as SMALL } from "../../schemas/memory-limits.ts";
import { ByteBudget } from "./byte-budget.ts";

describe("ByteBudget", () => {
  /** Four large units of memory, two of them for one account and one for one app, and four small bodies. */
  const UNIT = 4 * SMALL;
  const opened = () =>
    new ByteBudget({
      bytesMax: 4 * UNIT,
      smallBytesMax: 4 * SMALL,
      shares: [0.5, 0.25],
      refusal: () => new ActorError("busy", "Cannot take: there is no room"),
    });
  const app = (name: string) => [name.charAt(0), name];
  const hold = (budget: ByteBudget, name: string, bytes: number) => {
    const held = budget.open(app(name));
    held.take(bytes);
    return held;
  };
  const isRefused = (run: () => unknown) => expect(run).to.throw().with.property("code", "busy");

  it("gives an app its share and not one byte more, and its account's other apps the rest of the account's", () => {
    const budget = opened();
    hold(budget, "a1", UNIT - SMALL - 1);
    const last = budget.open(app("a1"));
    last.take(SMALL + 1);
    isRefused(() => last.take(1));
    hold(budget, "a2", UNIT);
    isRefused(() => hold(budget, "a3", SMALL + 1));
    expect(budget.bytes).to.equal(2 * UNIT);
  });

  it("gives another account room while one account holds its whole share", () => {
    const budget = opened();
    hold(budget, "a1", UNIT);
    hold(budget, "a2", UNIT);
    isRefused(() => hold(budget, "a3", SMALL + 1));
    hold(budget, "b1", UNIT).release();
    hold(budget, "b1", UNIT);
    hold(budget, "c1", UNIT);
    isRefused(() => hold(budget, "d1", SMALL + 1));
  });

  it("takes small bodies of everybody while large ones hold all of their room", () => {
    const budget = opened();
    for (const name of ["a1", "b1", "c1", "d1"]) hold(budget, name, UNIT);
    for (const name of ["a1", "b1", "c1", "d1"]) hold(budget, name, SMALL);
    isRefused(() => hold(budget, "e1", 1));
  });

  it("takes small bodies past their reserve, within the room of large ones", () => {
    const budget = opened();
    for (let count = 0; count < 1 + UNIT / SMALL; count++) hold(budget, "a1", SMALL);
    isRefused(() => hold(budget, "a1", 1));
    hold(budget, "b1", SMALL);
  });

  it("moves a body that becomes large out of the reserve", () => {
    const budget = opened();
    const growing = ["a1", "b1", "c1", "d1"].map((name) => hold(budget, name, SMALL));
    for (const held of growing) held.take(1);
    for (const name of ["a1", "b1", "c1", "d1"]) hold(budget, name, SMALL);
    for (const held of growing) held.take(UNIT - SMALL - 1);
    isRefused(() => growing[0]?.take(1));
  });

  it("checks declared bytes without counting them", () => {
    const budget = opened();
    hold(budget, "a1", SMALL + 1);
    budget.open(app("a1"), UNIT - SMALL - 1);
    isRefused(() => budget.open(app("a1"), UNIT - SMALL));
    expect(budget.bytes).to.equal(SMALL + 1);
  });

  it("takes a body beside no others up to any size, beside those of its owner only up to the share", () => {
    const budget = opened();
    const alone = hold(budget, "a1", 5 * UNIT);
    isRefused(() => hold(budget, "a1", SMALL + 1));
    alone.release();
    hold(budget, "b1", UNIT);
    isRefused(() => hold(budget, "a1", 3 * UNIT + 1));
    hold(budget, "a1", 3 * UNIT);
  });

  it("counts without a refusal, and refuses the owners who have more than their share", () => {
    const budget = opened();
    const answer = budget.open(app("a1"));
    answer.count(UNIT);
    budget.checkOwed(app("a1"));
    answer.count(1);
    // The app is past its share, but more than half of all bytes are free.
    budget.checkOwed(app("a1"));
    budget.open(app("b1")).count(UNIT);
    isRefused(() => budget.checkOwed(app("a1")));
    budget.checkOwed(app("a2"));
    for (const name of ["b2", "c1"]) budget.open(app(name)).count(UNIT);
    // All owners together are past the limit now.
    isRefused(() => budget.checkOwed(app("b1")));
    budget.checkOwed(app("e1"));
    hold(budget, "e1", SMALL);
  });

  it("releases all bytes once", () => {
    const budget = opened();
    const first = hold(budget, "a1", UNIT);
    const second = hold(budget, "a2", SMALL);
    first.release();
    first.release();
    expect(budget.bytes).to.equal(SMALL);
    second[Symbol.dispose]();
    expect(budget.bytes).to.equal(0);
    hold(budget, "a1", UNIT);
  });
});
