import { expect } from "chai";
import { RowsView, StoredRow } from "./rows-view.ts";

describe("RowsView", () => {
  let decoded: string[];
  const decode = (text: string) => {
    decoded.push(text);
    return JSON.parse(text) as unknown;
  };
  const rows = () =>
    new Map<string, unknown>([
      ["a", new StoredRow("[1]", decode)],
      ["b", new StoredRow("[2]", decode)],
      ["c", "written"],
    ]);
  beforeEach(() => {
    decoded = [];
  });

  it("decodes a loaded row when it is first read, once, and no other", () => {
    const view = new RowsView(rows());
    expect(view.size).to.equal(3);
    expect(view.has("a")).to.equal(true);
    expect([...view.keys()]).to.deep.equal(["a", "b", "c"]);
    expect(decoded).to.deep.equal([]);
    expect(view.get("b")).to.deep.equal([2]);
    expect(view.get("b")).to.equal(view.get("b"));
    expect(view.get("c")).to.equal("written");
    expect(view.get("none")).to.equal(undefined);
    expect(decoded).to.deep.equal(["[2]"]);
  });

  it("shows decoded rows in their order to all iterators", () => {
    const all = [
      ["a", [1]],
      ["b", [2]],
      ["c", "written"],
    ];
    const view = new RowsView(rows());
    expect([...view]).to.deep.equal(all);
    expect([...new RowsView(rows()).values()]).to.deep.equal([[1], [2], "written"]);
    const seen: unknown[] = [];
    new RowsView(rows()).forEach((value, row) => {
      seen.push([row, value]);
    });
    expect(seen).to.deep.equal(all);
  });

  it("get() throws the error of decoding an invalid row, each time", () => {
    const view = new RowsView(new Map([["bad", new StoredRow("{", decode)]]));
    for (const _ of [1, 2]) expect(() => view.get("bad")).to.throw(SyntaxError);
  });
});
