import { expect } from "chai";
import { GroupWriter } from "./group-writer.ts";
import { Places } from "./places.ts";

const { signal } = new AbortController();

describe("Places", () => {
  it("take() waits in order, and a place that is given back twice is one", async () => {
    const places = new Places(1);
    const first = await places.take(signal);
    const order: number[] = [];
    const later = [1, 2].map((number) =>
      places.take(signal).then((giveBack) => {
        order.push(number);
        return giveBack;
      }),
    );
    first();
    first();
    (await later[0])?.();
    (await later[1])?.();
    expect(order).to.deep.equal([1, 2]);
    expect(places.free).to.equal(1);
  });

  it("take() leaves with its caller's signal", async () => {
    const places = new Places(1);
    const giveBack = await places.take(signal);
    const controller = new AbortController();
    const gone = new Error("gone");
    const waiting = places.take(controller.signal).catch((error: unknown) => error);
    controller.abort(gone);
    expect(await waiting).to.equal(gone);
    giveBack();
    expect(places.free).to.equal(1);
    expect(await places.take(controller.signal).catch((error: unknown) => error)).to.equal(gone);
  });
});

describe("GroupWriter", () => {
  it("add() writes together what came while a write was under way, at most so many", async () => {
    const groups: number[][] = [];
    const gate = Promise.withResolvers<void>();
    const writer = new GroupWriter<number>(async (group) => {
      groups.push(group);
      await gate.promise;
    }, 3);
    const first = writer.add(0);
    await undefined;
    await undefined;
    const others = [1, 2, 3, 4].map((item) => writer.add(item));
    gate.resolve();
    await Promise.all([first, ...others]);
    expect(groups).to.deep.equal([[0], [1, 2, 3], [4]]);
  });

  it("add() rejects for those whose group failed, and goes on", async () => {
    const writer = new GroupWriter<string>(async (group) => {
      if (group.includes("bad")) throw new Error("no");
    }, 10);
    const both = await Promise.allSettled([writer.add("bad"), writer.add("beside")]);
    expect(both.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    await writer.add("good");
  });
});
