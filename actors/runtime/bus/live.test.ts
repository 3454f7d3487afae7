import { expect } from "chai";
import type { Contract } from "../../../schemas/contract.ts";
import { LIVE_BYTES_MAX } from "../../../schemas/limits.ts";
import { addressOf, liveSubject } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { probe, probeActor, tally } from "../../../scripts/testing/probe.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { StoredCommit } from "../commit/journal.ts";
import { Bus } from "./bus.ts";
import { BusLiveUpdates, LIVE_UPDATES_KEPT, type LiveUpdate } from "./live.ts";

describe("live updates", function () {
  this.timeout(90_000);
  let world: World;
  let bus: Bus;
  let live: BusLiveUpdates;
  const leaving = new AbortController();

  before(async () => {
    world = await startWorld({ definitions: [probeActor] });
    // A host that loses its lease may lose updates of its last commits.
    await world.host({ longLease: true });
    bus = await Bus.connect({ url: world.url, name: "watcher" });
    live = new BusLiveUpdates(bus);
  });
  after(async () => {
    leaving.abort();
    await bus.close();
    await world[Symbol.asyncDispose]();
  });

  const show = (key: string, text: string, { note = true, characters = 0 } = {}) =>
    // The long deadline allows a killed nats-server, and then the shards, time to come back.
    world.client.call(probe, key, "show", { text, note, characters }, { deadlineMs: 60_000 });

  it("subscribe() misses no later update and keeps their order, with or without changes of state", async () => {
    for (let round = 0; round < 20; round++) {
      const key = `in order.${round}>é`;
      const updates = await live.subscribe(probe, key, leaving.signal);
      const texts = Array.from({ length: 30 }, (_, index) => `${index}`);
      void Promise.all(texts.map((text) => show(key, text, { note: Number(text) % 3 > 0 })));
      const seen = await take(updates, texts.length);
      expect(seen.map((update) => "value" in update && update.value.text)).to.deep.equal(texts);
    }
  });

  it("an update arrives when the change that it describes is durable", async () => {
    const updates = await live.subscribe(probe, "durable", leaving.signal);
    for (let count = 1; count <= 20; count++) {
      void show("durable", "x");
      const [update] = await take(updates, 1);
      expect(update).to.deep.equal({ value: { text: "x", count } });
      expect((await committed("durable")).state.log.length).to.be.at.least(count);
    }
  });

  it("watchers of another key see none of it", async () => {
    const other = await live.subscribe(probe, "other", leaving.signal);
    await show("one", "x");
    await show("other", "y");
    expect(await take(other, 1)).to.deep.equal([{ value: { text: "y", count: 1 } }]);
  });

  it("a slow reader gets the latest LIVE_UPDATES_KEPT updates, and learns that it missed some", async () => {
    for (const more of [0, 1]) {
      const key = `slow-${more}`;
      const updates = await live.subscribe(probe, key, leaving.signal);
      const number = LIVE_UPDATES_KEPT + more;
      for (let index = 1; index <= number; index++) await show(key, `${index}`, { note: false });
      await bus.connection.flush();
      const seen = await take(updates, number);
      const [first] = seen;
      expect(first).to.deep.equal(more ? { missed: true } : { value: { text: "1", count: 0 } });
      expect(seen.at(-1)).to.deep.equal({ value: { text: `${number}`, count: 0 } });
    }
  });

  it("shows an update of LIVE_BYTES_MAX; of a larger one shows only that there was one, and keeps its change", async () => {
    const updates = await live.subscribe(probe, "large", leaving.signal);
    const filling = LIVE_BYTES_MAX - JSON.stringify({ text: "a", count: 1 }).length;
    await show("large", "a", { characters: filling });
    const [full] = await take(updates, 1);
    expect(full && "value" in full && full.value.text.length).to.equal(filling + 1);
    await show("large", "b", { characters: filling + 1 });
    await show("large", "c");
    const rest = await take(updates, 2);
    expect(rest).to.deep.equal([{ missed: true }, { value: { text: "c", count: 3 } }]);
  });

  it("an unreadable update counts as missed", async () => {
    const updates = await live.subscribe(probe, "odd", leaving.signal);
    for (const payload of ["", "{", '{"text":1}']) {
      bus.connection.publish(liveSubject(addressOf(probe.kind, "odd")), payload);
    }
    expect(await take(updates, 3)).to.deep.equal(Array(3).fill({ missed: true }));
  });

  it("a subscription ends with its signal or its reader", async () => {
    const own = new AbortController();
    const updates = await live.subscribe(probe, "ends", own.signal);
    const reading = take(updates, 1);
    own.abort();
    expect(await reading).to.deep.equal([]);
    const left = await live.subscribe(probe, "ends", leaving.signal);
    void show("ends", "x");
    for await (const _ of left) break;
    const aborted = await live.subscribe(probe, "ends", AbortSignal.abort());
    expect(await take(aborted, 1)).to.deep.equal([]);
    const interest = `live.probe.ends`;
    await until("nobody watches", async () => {
      const answer = await bus.connection.request(interest, "", { timeout: 500 }).catch((e) => e);
      return answer instanceof Error && "isNoResponders" in answer;
    });
  });

  it("after an absence of the bus the reader learns that it may have missed updates", async () => {
    const updates = await live.subscribe(probe, "away", leaving.signal);
    await world.nats?.kill();
    await until("it is noticed", () => !bus.connected);
    const refused = await refusalOf(live.subscribe(probe, "away", leaving.signal));
    expect(refused.code).to.equal("unavailable");
    await world.nats?.start();
    expect(await take(updates, 1)).to.deep.equal([{ missed: true }]);
    await show("away", "back");
    expect(await take(updates, 1)).to.deep.equal([{ value: { text: "back", count: 1 } }]);
  });

  it("a kind without live updates cannot be watched", async () => {
    // The cast lets the test watch a kind without live updates, which the compiler would refuse.
    const silent = tally as Contract as typeof probe;
    const watched = live.subscribe(silent, "a", leaving.signal);
    const failure = await watched.catch((error: Error) => error.message);
    expect(failure).to.include("it shows nothing");
  });

  /** Reads the newest commit that changed the actor from the journal of its host. */
  const committed = async (key: string) => {
    const { journalStream, journals } = world.subjects;
    const message = await world.bus.readLast(journalStream, journals);
    const address = addressOf(probe.kind, key);
    const { entries } = StoredCommit.parse(message?.json());
    return entries.findLast(({ puts }) => puts[address])?.puts[address] as {
      state: { log: string[] };
    };
  };
});

/** Takes the next updates without ending the iteration. */
async function take<T>(updates: AsyncIterable<LiveUpdate<T>>, number: number) {
  const iterator = updates[Symbol.asyncIterator]();
  const taken: LiveUpdate<T>[] = [];
  while (taken.length < number) {
    const { done, value } = await iterator.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}
