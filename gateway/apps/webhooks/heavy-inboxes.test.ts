import { expect } from "chai";
import { HEAVY_INBOXES_KEPT_MAX, HeavyInboxes } from "./heavy-inboxes.ts";

describe("HeavyInboxes", () => {
  it("keeps as many as it may, and lets go of the one that was noted longest ago", () => {
    const heavy = new HeavyInboxes();
    for (let index = 0; index < HEAVY_INBOXES_KEPT_MAX; index++) heavy.note(`${index}`, true);
    expect([heavy.has("0"), heavy.has("1")]).to.deep.equal([true, true]);
    heavy.note("0", true);
    heavy.note("one more", true);
    expect([heavy.has("0"), heavy.has("1"), heavy.has("2")]).to.deep.equal([true, false, true]);
    heavy.note("2", false);
    expect(heavy.has("2")).to.equal(false);
  });
});
