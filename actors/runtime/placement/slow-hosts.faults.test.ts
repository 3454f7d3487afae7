import { expect } from "chai";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { counter } from "../../../scripts/testing/counter.ts";
import { startCluster } from "../../../scripts/testing/nats-server.ts";
import { ProcessorTurns } from "../../../scripts/testing/processor-turns.ts";

/** Each process runs a tenth of the time. Its pauses make a renewal of a lease take a second or two. */
const TURNS = { runMs: 60, everyMs: 600 };
const CALLERS = 16;
/** Number of answers that each caller must get while the processes are slow. */
const ANSWERS = 5;
const patient = { deadlineMs: 120_000 };

describe("hosts and servers that get the processor a tenth of the time", function () {
  this.timeout(600_000);

  it("answer every call, although a renewal takes longer than a usual lease", async () => {
    await using cluster = await startCluster(3);
    await using world = await startWorld({ replicas: 3, url: cluster.urls.join(",") });
    await using hosts = new AsyncDisposableStack();
    const processes = ["one", "two"].map((name) => new ActorProcess({ url: world.url, name }));
    for (const one of processes) hosts.defer(() => one.kill());
    await Promise.all(processes.map(({ ready }) => ready));
    const keys = Array.from({ length: CALLERS }, (_, index) => `slow-${index}`);
    const call = async (key: string) =>
      (await world.client.call(counter, key, "increment", { by: 1 }, patient)).count;
    {
      const pids = [...processes, ...cluster.servers].map(({ pid }) => pid);
      await using _turns = new ProcessorTurns(pids, TURNS);
      await Promise.all(
        keys.map(async (key) => {
          for (let count = 1; count <= ANSWERS; count++) expect(await call(key)).to.equal(count);
        }),
      );
    }
    expect(await Promise.all(keys.map(call))).to.deep.equal(keys.map(() => ANSWERS + 1));
  });
});
