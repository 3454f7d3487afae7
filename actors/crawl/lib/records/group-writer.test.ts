import { expect } from "chai";
import { GroupWriter } from "./group-writer.ts";

describe("GroupWriter", () => {
  it("add() groups records that arrive during a write, up to the limit", async () => {
    const groups: number[][] = [];
    const gate = Promise.withResolvers<void>();
    const writer = new GroupWriter<number, number>(async (group) => {
      groups.push(group);
      await gate.promise;
      return (item) => 10 * item;
    }, 3);
    const first = writer.add(0);
    await undefined;
    await undefined;
    const others = [1, 2, 3, 4].map((item) => writer.add(item));
    gate.resolve();
    expect(await Promise.all([first, ...others])).to.deep.equal([0, 10, 20, 30, 40]);
    expect(groups).to.deep.equal([[0], [1, 2, 3], [4]]);
  });

  it("add() rejects for the records of a failed group, and continues", async () => {
    const writer = new GroupWriter<string, string>(async (group) => {
      if (group.includes("bad")) throw new Error("no");
      return (item) => item;
    }, 10);
    const both = await Promise.allSettled([writer.add("bad"), writer.add("beside")]);
    expect(both.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    await writer.add("good");
  });
});
