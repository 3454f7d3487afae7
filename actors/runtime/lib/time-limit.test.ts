import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { expect } from "chai";
import { systemClock as clock } from "./clock.ts";
import { within } from "./time-limit.ts";

const LIMIT_MS = 5;
const { signal } = new AbortController();
const limit = { ms: LIMIT_MS, error: () => new Error("too late"), signal, clock };

describe("within", () => {
  it("within() ends work that takes longer", async () => {
    const work = within(limit, () => new Promise(() => {}));
    expect(await work.catch((error: Error) => error.message)).to.equal("too late");
  });

  it("within() handles what arrived while the process stood still before it counts it as late", async () => {
    const shared = new Int32Array(new SharedArrayBuffer(4));
    const answering = `
      const { parentPort, workerData } = require("node:worker_threads");
      parentPort.on("message", () => {
        parentPort.postMessage("an answer");
        Atomics.store(workerData, 0, 1);
        Atomics.notify(workerData, 0);
      });`;
    const worker = new Worker(answering, { eval: true, workerData: shared });
    await once(worker, "online");
    // After this turn, the event loop runs its timers first.
    await turn();
    const heard = within(limit, () => {
      const answered = once(worker, "message");
      worker.postMessage("a question");
      const standsUntil = performance.now() + 2 * LIMIT_MS;
      Atomics.wait(shared, 0, 0);
      while (performance.now() < standsUntil);
      return answered;
    });
    expect(await heard).to.deep.equal(["an answer"]);
    await worker.terminate();
  });
});
