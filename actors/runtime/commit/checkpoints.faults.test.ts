import { expect } from "chai";
import {
  CHECKPOINT_MS,
  JOURNAL_MESSAGE_BYTES_MAX,
  REMINDER_SOON_MS,
  ROW_BYTES_MAX,
  SHARDS,
  TRANSITION_ROWS_MAX,
} from "../../../schemas/limits.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { HoldingClock } from "../../../scripts/testing/holding-clock.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { until } from "../../../scripts/testing/until.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import { Bus } from "../bus/bus.ts";
import { Epoch } from "../placement/epoch.ts";
import { reminderText, scheduleOf } from "../shards/reminders.ts";
import { JOURNAL_BYTES_MAX, JOURNAL_KEPT_BYTES_MAX } from "./journal.ts";
import { JournalReplay } from "./journal-replay.ts";
import { keysBeneath, RowNames } from "./stored-subjects.ts";

const definitions = [counterActor, probeActor];
const KEYS = Array.from({ length: 40 }, (_, index) => `c${index}`);

const increment = (world: World) =>
  Promise.all(KEYS.map((key) => world.client.call(counter, key, "increment", { by: 1 })));

const storedCount = async ({ bus, subjects }: World, key: string) => {
  const message = await bus.readLast(subjects.stream, subjects.value(`counter.${key}`));
  return message?.json<{ state: { count: number } }>().state.count ?? 0;
};

/** Starts a host with a clock that stands still. The host writes checkpoints only when the clock is released. */
async function startUnwritten() {
  const now = 1_800_000_000_000;
  const clock = new HoldingClock(CHECKPOINT_MS);
  clock.now = () => now;
  const world = await startWorld({ definitions, clock });
  await world.host();
  return { now, clock, world };
}

/** Returns the subject of a counter's reminder. */
function reminderOf({ subjects }: World, key: string): string {
  const address = addressOf("counter", key);
  return subjects.remind(shardOf(address), address, "tick");
}

/** Records all messages to the state stream and the journals from now on, by subject. */
function watchWrites({ bus, subjects }: World): string[] {
  const written: string[] = [];
  for (const subjectsOf of [subjects.all, subjects.journals]) {
    bus.connection.subscribe(subjectsOf, {
      callback: (_, { subject }) => void written.push(subject),
    });
  }
  return written;
}

/** The shards whose keys may lack commits, as their epochs say. */
const shardsToReplay = async ({ bus, subjects }: World) => {
  const named: number[] = [];
  for (let shard = 0; shard < SHARDS; shard++) {
    const message = await bus.readLast(subjects.stream, subjects.epoch(shard));
    const { from, firstJournals } = Epoch.parse(message?.json());
    if (from || firstJournals.length > 0) named.push(shard);
  }
  return named;
};

describe("the journal", function () {
  this.timeout(120_000);

  it("stores the changes of many actors as one message, and a moment later in their keys", async () => {
    await using world = await startWorld({ definitions });
    const host = await world.host({ longLease: true });
    await increment(world);
    const written = watchWrites(world);
    await increment(world);
    const commits = written.filter((key) => key.startsWith("journal."));
    expect(new Set(commits).size).to.equal(1);
    expect(commits.length).to.be.within(1, 10);
    for (const key of KEYS) {
      await until(`${key} holds it`, async () => (await storedCount(world, key)) === 2);
    }
    expect(await shardsToReplay(world)).to.deep.equal([]);
    await host.stop();
    expect(await world.count(world.subjects.journalStream)).to.equal(0);
    expect(await world.count(world.subjects.stream, world.subjects.checkpoint("*"))).to.equal(0);
  });

  it("is read by the next owner of a killed host, with rows and outbox, and removed then", async () => {
    await using world = await startWorld({ definitions });
    const dying = new ActorProcess({ url: world.url, name: "dying" });
    await dying.ready;
    // Only the journal holds the last commits. Checkpoints have written the earlier commits to their keys.
    for (let round = 1; round <= 20; round++) {
      await Promise.all([
        increment(world),
        world.client.call(counter, "rows", "setRows", { rows: { a: round, [`r${round}`]: round } }),
        world.client.call(counter, "giver", "give", { to: "taker", by: 1 }),
      ]);
    }
    await world.client.call(counter, "rows", "setRows", { rows: { r1: null } });
    await dying.kill();
    const journal = () => world.count(world.subjects.journalStream);
    expect(await journal()).to.be.greaterThan(1);
    const host = await world.host({ name: "next", complete: false });
    await until("the next owner has all", () => host.placement.openShards === SHARDS, 45_000);
    for (const key of KEYS) {
      expect((await world.client.call(counter, key, "get", {})).count).to.equal(20);
      expect(await storedCount(world, key)).to.equal(20);
    }
    const { rows } = await world.client.call(counter, "rows", "getRows", {});
    expect(Object.keys(rows)).to.have.length(20);
    expect(rows).to.include({ a: 20, r20: 20 });
    await until("all mail came once", async () => {
      return (await world.client.call(counter, "taker", "get", {})).count === 20;
    });
    expect((await world.client.call(counter, "giver", "get", {})).count).to.equal(-20);
    expect(await shardsToReplay(world)).to.deep.equal([]);
    await until("nobody keeps its journal", async () => {
      const { journalStream, journals } = world.subjects;
      const names = await world.bus.subjectsOf(journalStream, journals);
      return names.every((name) => !name.includes("dying"));
    });
  });

  it("holds reminders that are due later, and writes those that are due soon to the bus at once", async () => {
    const { now, clock, world: started } = await startUnwritten();
    await using world = started;
    const remind = (key: string, at: number | null) =>
      world.client.call(counter, key, "remindAt", { at });
    const scheduled = async (key: string) => {
      const message = await world.bus.readLast(world.subjects.stream, reminderOf(world, key));
      return message?.header.get("Nats-Schedule");
    };
    await remind("soon", now + REMINDER_SOON_MS - 1);
    expect(await scheduled("soon")).to.equal(`@at ${new Date(now + 2_999).toISOString()}`);
    await remind("later", now + REMINDER_SOON_MS);
    expect(await scheduled("later")).to.equal(undefined);
    clock.release();
    await until("it is written down", async () => (await scheduled("later")) !== undefined);
    expect(await scheduled("later")).to.equal(`@at ${new Date(now + 3_000).toISOString()}`);
    await remind("later", null);
    await until("it is taken back", async () => (await scheduled("later")) === "");
  });

  it("writes a reminder that is due soon beside its commit, and the rest of the commit into the journal", async () => {
    const { now, clock, world: started } = await startUnwritten();
    await using world = started;
    const subject = reminderOf(world, "a");
    const schedules: string[] = [];
    world.bus.connection.subscribe(subject, {
      callback: (_, { headers }) => void schedules.push(headers?.get("Nats-Schedule") ?? ""),
    });
    const at = (ms: number) => `@at ${new Date(now + ms).toISOString()}`;
    const remind = (ms: number) => world.client.call(counter, "a", "remindAt", { at: now + ms });
    // No later write replaces the reminder with a pending older time; a checkpoint repeats the newest time.
    await remind(10_000);
    await remind(1_000);
    expect(schedules).to.deep.equal([at(1_000)]);
    await world.client.call(counter, "a", "increment", { by: 1 });
    expect(await storedCount(world, "a")).to.equal(0);
    clock.release();
    await until("it is written down", async () => (await storedCount(world, "a")) === 1);
    expect(schedules).to.deep.equal([at(1_000), at(1_000)]);
  });

  it("retries a reminder that could not be written beside its commit", async () => {
    const { now, clock, world: started } = await startUnwritten();
    await using world = started;
    const subject = reminderOf(world, "a");
    const { request } = Bus.prototype;
    let lost = 0;
    Bus.prototype.request = function (this: Bus, to, ...rest) {
      if (to !== subject) return request.call(this, to, ...rest);
      lost += 1;
      return Promise.reject(new Error("lost on its way"));
    };
    try {
      await world.client.call(counter, "a", "remindAt", { at: now + 1_000 });
    } finally {
      Bus.prototype.request = request;
    }
    expect(lost).to.equal(1);
    const stored = () => world.bus.readLast(world.subjects.stream, subject);
    expect(await stored()).to.equal(undefined);
    clock.release();
    const message = await until("it is written down", stored);
    const due = new Date(now + 1_000).toISOString();
    expect(message.header.get("Nats-Schedule")).to.equal(`@at ${due}`);
  });

  it("restores a reminder that a failed commit had replaced", async () => {
    await using world = await startWorld({ definitions });
    await world.host();
    const { subjects } = world;
    const subject = reminderOf(world, "a");
    const own = Date.now() + 2 * REMINDER_SOON_MS;
    await world.client.call(counter, "a", "remindAt", { at: own });
    const other = reminderText(Date.now() + 500);
    await until("it is on the bus", () => world.bus.readLast(subjects.stream, subject));
    await writeAtomically(world.bus, [
      { subject, payload: other, headers: scheduleOf(subjects, subject, other) },
    ]);
    const cameAt = await until(
      "its own has come",
      async () => (await world.client.call(counter, "a", "get", {})).count === 1 && Date.now(),
      45_000,
    );
    expect(cameAt).to.be.at.least(own);
  });

  it("delivers reminders although their host was killed before it wrote them to their keys", async () => {
    await using world = await startWorld({ definitions });
    const dying = new ActorProcess({ url: world.url, name: "dying", holdsCheckpoints: true });
    await dying.ready;
    const at = Date.now() + 3 * REMINDER_SOON_MS;
    const remind = (key: string, to: number | null) =>
      world.client.call(counter, key, "remindAt", { at: to });
    await Promise.all(KEYS.map((key) => remind(key, at)));
    await Promise.all(KEYS.slice(20).map((key) => remind(key, null)));
    await dying.kill();
    expect(await world.count(world.subjects.stream, "$KV.state-0.remind.>")).to.equal(0);
    await world.host({ name: "next" });
    const counts = () =>
      Promise.all(
        KEYS.map(async (key) => (await world.client.call(counter, key, "get", {})).count),
      );
    const cameAt = await until(
      "the first has come",
      async () => (await counts()).includes(1) && Date.now(),
      45_000,
    );
    expect(cameAt).to.be.at.least(at);
    await until("each came once, and none that was taken back", async () => {
      return (await counts()).join() === KEYS.map((_, index) => (index < 20 ? 1 : 0)).join();
    });
  });

  it("replay() writes what the keys may lack of a shard under its epoch, however often it runs", async () => {
    await using world = await startWorld({ definitions });
    const { bus, subjects } = world;
    const jetstream = bus.jetstream.jetstream();
    const publish = (subject: string, content: unknown) =>
      jetstream.publish(subject, JSON.stringify(content));
    const commit = (number: number, from: number, keys: string[], epoch = 7) => ({
      ...{ number, from },
      entries: keys.map((key) => ({
        ...{ shard: 5, epoch },
        puts: { [`counter.${key}`]: { state: { count: number } }, [`counter.${key}.=.r`]: number },
        removed: [`counter.${key}.=.gone`],
      })),
    });
    const journal = subjects.journal("one");
    await publish(subjects.row("counter.b", "gone"), 1);
    await publish(journal, commit(1, 0, ["a"]));
    const { seq: from } = await publish(journal, commit(2, 0, ["b"]));
    await publish(journal, commit(3, 0, ["c", "b"]));
    await publish(journal, commit(4, 0, ["other"], 6));
    await publish(journal, commit(5, from, ["d"]));
    const { seq: sequence } = await publish(subjects.epoch(5), { owner: "next" });
    const fence = { sequence, subject: subjects.epoch(5) };
    const run = (shard: number) => {
      const sources = { from: { journal: "one", epoch: 7 }, firstJournals: [] };
      return new JournalReplay(bus, subjects).replay(shard, fence, sources, "next");
    };
    await run(4);
    expect(await storedCount(world, "b")).to.equal(0);
    // A second seal, or a write behind a seal, changes nothing.
    await publish(journal, { sealedBy: "another" });
    await publish(journal, commit(6, 0, ["late"]));
    await publish(journal, { sealedBy: "another", from });
    for (let times = 0; times < 2; times++) {
      await Promise.all([run(5), run(5)]);
      const counts = await Promise.all(
        ["a", "b", "c", "d", "other", "late"].map((key) => storedCount(world, key)),
      );
      expect(counts).to.deep.equal([0, 3, 3, 5, 0, 0]);
      const gone = await bus.readLast(subjects.stream, subjects.row("counter.b", "gone"));
      expect(gone?.header.get("KV-Operation")).to.equal("DEL");
    }
    await publish(subjects.epoch(5), { owner: "another" });
    const written = await world.written();
    const error = await run(5).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(WriteRefused);
    expect(await world.written()).to.equal(written);
  });

  it("its checkpoint is refused after a seal, and the host goes on under another name", async () => {
    const { clock, world: started } = await startUnwritten();
    await using world = started;
    const { bus, subjects, client } = world;
    await client.call(counter, "a", "increment", { by: 1 });
    const [checkpoint = ""] = await bus.subjectsOf(subjects.stream, subjects.checkpoint("*"));
    await bus.jetstream.jetstream().publish(checkpoint, JSON.stringify({ sealedBy: "another" }));
    expect(await storedCount(world, "a")).to.equal(0);
    clock.release();
    await until("another host of the same process has written it", async () => {
      return (await storedCount(world, "a")) === 1;
    });
    expect((await client.call(counter, "a", "increment", { by: 1 })).count).to.equal(2);
    const names = await bus.subjectsOf(subjects.stream, subjects.checkpoint("*"));
    expect(names.some((name) => name !== checkpoint)).to.equal(true);
  });

  it("is not overwritten while another host may need it, nor after an unnoticed move of a shard", async () => {
    await using world = await startWorld({ definitions });
    await world.host();
    await increment(world);
    const { epoch } = world.subjects;
    // Names another owner for a shard without counters. The host learns of this a moment later, and takes the shard
    // back.
    const free = freeShard();
    const ghost = JSON.stringify({ owner: "ghost" });
    await Promise.all([
      world.bus.jetstream.jetstream().publish(epoch(free), ghost),
      increment(world),
    ]);
    await increment(world);
    for (const key of KEYS) {
      expect((await world.client.call(counter, key, "get", {})).count).to.equal(3);
    }
  });

  it("a listing includes rows and keys that only a journal holds", async () => {
    await using world = await startWorld({ definitions });
    await world.host({ clock: new HoldingClock(CHECKPOINT_MS) });
    await world.client.call(probe, "listed", "setRow", { row: "pack.one", value: "1" });
    const names = new RowNames(world.bus, { buckets: 1 });
    expect(await storedRows(world, "probe.listed")).to.equal(0);
    expect([...(await names.list("probe", "pack.*"))]).to.deep.equal(["pack.one"]);
    expect([...(await names.list("probe", "pack"))]).to.deep.equal([]);
    await increment(world);
    const query = { kind: "probe", tokens: "listed", buckets: 1 };
    expect([...(await keysBeneath(world.bus, query))]).to.deep.equal(["listed"]);
  });

  it("takes a commit of any size: as one message up to JOURNAL_MESSAGE_BYTES_MAX, past it as several", async () => {
    await using world = await startWorld({ definitions });
    await world.host({ clock: new HoldingClock(CHECKPOINT_MS) });
    const fill = async (key: string, count: number, characters: number) => {
      const { messages: before } = await journalOf(world);
      await world.client.call(probe, key, "fillRows", { from: 0, count, characters });
      expect(await storedRows(world, `probe.${key}`)).to.equal(0);
      return (await journalOf(world)).messages - before;
    };
    expect(await fill("many", TRANSITION_ROWS_MAX, 10)).to.equal(1);
    const wide = Math.floor(ROW_BYTES_MAX * 0.9);
    const fitting = Math.floor(JOURNAL_MESSAGE_BYTES_MAX / (wide + 100));
    expect(await fill("light", fitting, wide)).to.equal(1);
    expect(await fill("heavy", fitting + 1, wide)).to.equal(2);
  });

  it("waits for room: more than it may hold is committed while its checkpoints go on", async () => {
    await using world = await startWorld({ definitions });
    await world.host({ clock: new HoldingClock(CHECKPOINT_MS) });
    const wide = Math.floor(ROW_BYTES_MAX * 0.9);
    for (let from = 0; from < 100; from += 4) {
      await world.client.call(probe, "w", "fillRows", { from, count: 4, characters: wide });
    }
    const { rows } = await world.client.call(probe, "w", "setRow", { row: "x", value: "y" });
    expect(rows).to.equal(100);
  });

  it("keeps few bytes of commits that are in their keys, and opens with all of them after a kill", async () => {
    await using world = await startWorld({ definitions });
    const host = new ActorProcess({ url: world.url, name: "large" });
    await host.ready;
    const characters = Math.floor(ROW_BYTES_MAX * 0.9);
    const rows = { from: 0, count: 8, characters };
    const commits = Math.ceil((2 * JOURNAL_KEPT_BYTES_MAX) / (rows.count * characters));
    for (let at = 0; at < commits; at++) {
      await world.client.call(probe, `large.${at % 4}`, "fillRows", rows);
      const { bytes } = await journalOf(world);
      expect(bytes).to.be.below(JOURNAL_KEPT_BYTES_MAX + JOURNAL_BYTES_MAX + 4_000_000);
    }
    await host.kill();
    await world.host({ name: "next" });
    for (let at = 0; at < 4; at++) {
      const row = { row: "more", value: "x" };
      const answer = await world.client.call(probe, `large.${at}`, "setRow", row);
      expect(answer).to.deep.equal({ rows: rows.count });
    }
  });

  it("is written to the keys before an actor is loaded", async () => {
    await using world = await startWorld({ definitions });
    await world.host();
    await world.client.call(probe, "f", "fillRows", { from: 0, count: 200, characters: 10 });
    await world.client.call(probe, "f", "setRow", { row: "b", value: "1" });
    await world.client.call(probe, "f", "forget", { to: "g" });
    expect(await world.client.call(probe, "f", "setRow", { row: "c", value: "1" })).to.deep.equal({
      rows: 0,
    });
  });
});

const journalOf = async ({ bus, subjects }: World) =>
  (await bus.jetstream.streams.info(subjects.journalStream)).state;

function freeShard(): number {
  const used = new Set(KEYS.map((key) => shardOf(addressOf("counter", key))));
  for (let shard = 0; shard < SHARDS; shard++) if (!used.has(shard)) return shard;
  throw new Error("every shard is used");
}

/** Rows with their mark. */
const storedRows = ({ bus, subjects }: World, address: string) =>
  bus.subjectsOf(subjects.stream, subjects.rows(address)).then((found) => found.length);
