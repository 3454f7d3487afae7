import { expect } from "chai";
import pino from "pino";
import { ActorHosts, HOSTS_MISSING_MS } from "./actor-hosts.ts";
import { startWorld, type World } from "./testing/actor-world.ts";
import { counterActor } from "./testing/counter.ts";
import { until } from "./testing/until.ts";

describe("ActorHosts", function () {
  this.timeout(90_000);
  let world: World;
  before(async () => {
    world = await startWorld({ definitions: [counterActor] });
  });
  after(() => world[Symbol.asyncDispose]());

  /**
   * A watch whose clock goes on by each wait. `found` is what it reports after each question, and `waits` how long it
   * waits for the next one.
   */
  function watch() {
    const found: boolean[] = [];
    const waits: number[] = [];
    let ms = 0;
    const stop = new AbortController();
    const hosts = ActorHosts.watch({
      bus: world.bus,
      clock: {
        monotonic: () => ms,
        async wait(waitMs) {
          ms += waitMs;
          found.push(hosts.missing.length > 0);
          waits.push(waitMs);
          // Lets other work of this process go on.
          await new Promise((resolve) => setTimeout(resolve, 1));
        },
      },
      logger: pino({ level: "silent" }),
      signal: stop.signal,
    });
    return { found, waits, end: () => stop.abort() };
  }

  it("are missing after HOSTS_MISSING_MS without any, not earlier, and until one answers", async () => {
    const { found, waits, end } = watch();
    await until("they are missing", () => found.includes(true));
    // It asks each second while nobody answers. If this process stands still, no answer comes in time, which says
    // nothing about hosts: it then waits longer, and counts anew.
    const first = found.indexOf(true);
    const since = waits.slice(0, first).findLastIndex((ms) => ms !== 1_000) + 1;
    expect(first - since).to.equal(HOSTS_MISSING_MS / 1_000);
    await world.host({ name: "a" });
    await until("one answers", () => found.at(-1) === false);
    end();
  });

  it("are not missing while one of them is there", async () => {
    const { found, end } = watch();
    await until("it has asked often", () => found.length > 30);
    expect(found).to.not.include(true);
    end();
  });
});
