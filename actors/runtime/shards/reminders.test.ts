import { expect } from "chai";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { ActorHost } from "../actor-host.ts";

describe("reminders", function () {
  this.timeout(60_000);
  let world: World;
  let host: ActorHost;
  before(async () => {
    world = await startWorld({ definitions: [probeActor] });
    host = await world.host();
  });
  after(() => world[Symbol.asyncDispose]());

  type Times = { early?: number | null; late?: number | null };
  const remind = (key: string, times: Times) => world.client.call(probe, key, "remind", times);
  const log = async (key: string) => (await world.client.call(probe, key, "get", {})).log;
  const heard = (key: string, ...lines: string[]) =>
    until(`${key} hears ${lines}`, async () => (await log(key)).join() === lines.join());
  const address = (key: string) => addressOf("probe", key);
  const scheduled = (key: string, message: string) =>
    world.count(
      world.subjects.stream,
      world.subjects.remind(shardOf(address(key)), address(key), message),
    );
  const soon = () => Date.now() + 400;
  /** Returns a time well after `soon()`. */
  const later = () => Date.now() + 900;

  it("come once for each name, at their time, or at once if that has passed", async () => {
    await remind("two", { early: soon(), late: later() });
    await remind("past", { early: 1 });
    await heard("past", "early");
    await heard("two", "early", "late");
  });

  it("that are set again come only at the new time, earlier or later", async () => {
    const first = Date.now() + 8_000;
    await remind("moved", { early: first + 60_000, late: first });
    await remind("moved", { early: soon(), late: first + 500 });
    await heard("moved", "early", "late");
    await remind("moved", { early: null });
    expect(await log("moved")).to.deep.equal(["early", "late"]);
  });

  it("that are cancelled never come, and leave the stream", async () => {
    const early = Date.now() + 8_000;
    await remind("back", { early, late: early + 500 });
    await remind("never", { late: null });
    await until("it is scheduled", async () => (await scheduled("back", "early")) === 1);
    await remind("back", { early: null });
    await until("its marker is there", async () => {
      const early = await stored("back", "early");
      return early?.header.get("KV-Operation") === "DEL" && !early.header.has("Nats-Schedule");
    });
    await heard("back", "late");
    expect(await log("never")).to.deep.equal([]);
  });

  it("survive their host and nats-server, come late if no host was there, and are not doubled", async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `kept-${index}`);
    const times = { early: soon(), late: later() };
    await Promise.all(keys.map((key) => remind(key, times)));
    await host.stop();
    await world.nats?.restart();
    // All reminders come due while neither host nor server runs.
    await until("they are due", () => Date.now() > times.late + 300);
    host = await world.host();
    await Promise.all(keys.map((key) => heard(key, "early", "late")));
    await host.stop();
    host = await world.host();
    await Promise.all(keys.map((key) => remind(key, { early: soon() })));
    await Promise.all(keys.map((key) => heard(key, "early", "late", "early")));
    await until("nothing is left of them", async () => {
      const fired = await world.count(world.subjects.stream, "$KV.state-0.fired.>");
      return fired === 0;
    });
  });

  const stored = (key: string, message: string) =>
    world.bus.readLast(
      world.subjects.stream,
      world.subjects.remind(shardOf(address(key)), address(key), message),
    );
});
