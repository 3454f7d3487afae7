import { expect } from "chai";
import { InFlight } from "./in-flight.ts";

describe("InFlight", () => {
  it("run() lets so many through at once, the others in their order, also after a failure", async () => {
    const inFlight = new InFlight(2);
    const started: number[] = [];
    const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
    const runs = gates.map(({ promise }, index) =>
      inFlight
        .run(async () => {
          started.push(index);
          await promise;
        })
        .catch(() => {}),
    );
    await Promise.resolve();
    expect(started).to.deep.equal([0, 1]);
    gates[1]?.reject(new Error("as asked"));
    await runs[1];
    expect(started).to.deep.equal([0, 1, 2]);
    for (const { resolve } of gates) resolve();
    await Promise.all(runs);
    expect(started).to.deep.equal([0, 1, 2, 3, 4]);
    expect(await inFlight.run(async () => "free")).to.equal("free");
  });
});
