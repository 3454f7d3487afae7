import { expect } from "chai";
import type { Envelope } from "../../schemas/contract.ts";
import { Draft } from "./draft.ts";

interface State {
  pages: number;
  hosts: readonly string[];
  refusal?: string;
}
interface Row {
  url: string;
}

const before: State = { pages: 1, hosts: ["a.example"], refusal: "closed" };

describe("Draft", () => {
  it("transition() of an unchanged draft is the given state", () => {
    const draft = draftOf();
    draft.state.pages += 1;
    draft.state.pages -= 1;
    draft.state.hosts = before.hosts;
    expect(draft.hasNewState).to.equal(false);
    const transition = draft.transition();
    expect(transition.state).to.equal(before);
    expect(Object.keys(transition)).to.deep.equal(["state"]);
  });

  it("transition() contains replaced, added and removed members, and leaves the former state as it was", () => {
    const draft = draftOf();
    draft.state.pages = 2;
    delete draft.state.refusal;
    expect(draft.hasNewState).to.equal(true);
    expect(draft.transition().state).to.deep.equal({ pages: 2, hosts: ["a.example"] });
    expect(before).to.deep.equal({ pages: 1, hosts: ["a.example"], refusal: "closed" });
  });

  it("row() returns a row as the draft leaves it", () => {
    const draft = draftOf({ old: { url: "/old" }, kept: { url: "/kept" } });
    draft.write("old", null);
    draft.write("new", { url: "/new" });
    expect(["old", "kept", "new"].map((name) => draft.row(name)?.url)).to.deep.equal([
      undefined,
      "/kept",
      "/new",
    ]);
    expect(draft.transition().rows).to.deep.equal({ old: null, new: { url: "/new" } });
  });

  it("write() of a row that was never stored and is removed again writes nothing", () => {
    const draft = draftOf();
    draft.write("new", { url: "/new" });
    draft.write("new", null);
    expect(draft.writtenRows).to.equal(0);
    expect(draft.transition()).not.to.have.property("rows");
  });

  it("transition() contains the sends in order, and the latest time of each reminder", () => {
    const draft = draftOf();
    const [first, second] = [{ kind: "first" }, { kind: "second" }] as unknown as Envelope[];
    if (first && second) draft.send(first, second);
    draft.remind("look", 5);
    draft.remind("look", 7);
    draft.remind("expire", null);
    const { send, remind } = draft.transition();
    expect([send, remind]).to.deep.equal([[first, second], { look: 7, expire: null }]);
  });
});

function draftOf(rows: Record<string, Row> = {}) {
  const made = { newId: () => "", trace: () => undefined };
  const context = { key: "k", now: 1, ...made, rows: new Map(Object.entries(rows)) };
  return new Draft<State, Row, "look" | "expire">(before, context);
}
