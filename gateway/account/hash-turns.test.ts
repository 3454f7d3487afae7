import { expect } from "chai";
import { HashTurns } from "./hash-turns.ts";

const FOREVER = new AbortController().signal;

describe("HashTurns", () => {
  /** Takes the only place, lets these sources wait, and resolves to the order in which they are served. */
  async function served(waiting: readonly string[]): Promise<string[]> {
    const turns = new HashTurns(1);
    const first = await turns.take({ lane: "known", from: "first" }, FOREVER);
    const order: string[] = [];
    const all = waiting.map(async (name) => {
      const lane = name.startsWith("n") ? ("unknown" as const) : ("known" as const);
      const giveBack = await turns.take({ lane, from: name }, FOREVER);
      order.push(name);
      giveBack();
    });
    first();
    await Promise.all(all);
    return order;
  }

  it("serves known sources first, and an unknown one after every third", async () => {
    const order = await served(["n1", "n2", "n3", "b1", "b2", "b3", "b4", "b5", "b6", "b7"]);
    expect(order.join(" ")).to.equal("b1 b2 b3 n1 b4 b5 b6 n2 b7 n3");
  });

  it("serves the sources of a lane in turn", async () => {
    expect((await served(["b1", "b1", "b1", "b2", "b3", "b2"])).join(" ")).to.equal(
      "b1 b2 b3 b1 b2 b1",
    );
    expect((await served(["n1", "n1", "n2"])).join(" ")).to.equal("n1 n2 n1");
  });

  it("takes out a source that no longer waits, and gives its turn to the next", async () => {
    const turns = new HashTurns(1);
    const first = await turns.take({ lane: "known", from: "a" }, FOREVER);
    const leaving = new AbortController();
    const refused = turns.take({ lane: "known", from: "b" }, leaving.signal).catch(String);
    const next = turns.take({ lane: "known", from: "b" }, FOREVER);
    expect([turns.waiting("known"), turns.waiting("unknown")]).to.deep.equal([2, 0]);
    leaving.abort("left");
    expect(await refused).to.equal("left");
    expect(turns.waiting("known")).to.equal(1);
    first();
    (await next)();
    expect(turns.waiting("known")).to.equal(0);
    (await turns.take({ lane: "unknown", from: "c" }, FOREVER))();
  });
});
