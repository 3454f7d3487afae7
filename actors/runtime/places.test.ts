import { expect } from "chai";
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
