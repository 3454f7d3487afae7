import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { RefTable } from "./ref-table.ts";
import type { RepoRow } from "./repo-state.ts";

const VALUE = "1".repeat(40);

describe("RefTable", () => {
  it("conflicts() accounts for a ref that one change deletes and another replaces", () => {
    const rows = new Map<string, RepoRow>();
    const stored = new RefTable(rows, { seed: "seed", refs: 0, refNamesBytes: 0 });
    stored.set("refs/heads/a/b", VALUE);
    for (const [row, refs] of Object.entries(stored.changedRows(1))) rows.set(row, refs);
    const table = new RefTable(rows, { seed: "seed", refs: 1, refNamesBytes: 16 });
    table.set("refs/heads/a/b", ZERO_ID);
    expect(table.conflicts("refs/heads/a")).to.equal(false);
    table.set("refs/heads/a/c", VALUE);
    expect(table.conflicts("refs/heads/a")).to.equal(true);
    table.set("refs/heads/a/c", ZERO_ID);
    expect(table.conflicts("refs/heads/a")).to.equal(false);
  });

  it("conflicts() agrees for many names, which it counts, and for one, which it looks up", () => {
    const seed = SeededRandom.newSeed();
    const random = new SeededRandom(seed);
    const steps = ["a", "b", "c"];
    const name = () =>
      `refs/heads/${Array.from({ length: 1 + Math.floor(random.next() * 4) }, () => random.pick(steps)).join("/")}`;
    for (let round = 0; round < 20; round++) {
      const rows = new Map<string, RepoRow>();
      const held = { seed: "seed", refs: 0, refNamesBytes: 0 };
      const stored = new RefTable(rows, held);
      for (let i = 0; i < 10; i++) {
        const ref = name();
        if (!stored.conflicts(ref)) stored.set(ref, VALUE);
      }
      for (const [row, refs] of Object.entries(stored.changedRows(1))) rows.set(row, refs);
      const known = { seed: "seed", refs: stored.count, refNamesBytes: stored.namesBytes };
      const many = new RefTable(rows, known);
      const changes: [string, string][] = [];
      for (let i = 0; i < 100; i++) {
        const ref = name();
        const one = new RefTable(rows, known);
        for (const [changed, value] of changes) one.set(changed, value);
        const conflicts = one.conflicts(ref);
        expect(many.conflicts(ref), `seed ${seed}, round ${round}, ${ref}`).to.equal(conflicts);
        const value = many.get(ref) === ZERO_ID ? VALUE : ZERO_ID;
        if (value === VALUE && conflicts) continue;
        many.set(ref, value);
        changes.push([ref, value]);
      }
    }
  });
});
