import { expect } from "chai";
import {
  CHECKPOINT_MS,
  JOURNAL_ACTOR_MESSAGES_MAX,
  JOURNAL_COMMIT_BYTES_MAX,
  REMINDER_SOON_MS,
  ROW_BYTES_MAX,
  SHARDS,
  TRANSITION_ROWS_MAX,
} from "../../../schemas/limits.ts";
import { addressOf, shardOf, stateSubjects } from "../../../schemas/subjects.ts";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { HoldingClock } from "../../../scripts/testing/holding-clock.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { until } from "../../../scripts/testing/until.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import { Epoch } from "../placement/epoch.ts";
import { Outbox } from "../shards/outbox.ts";
import { reminderText, scheduleOf } from "../shards/reminders.ts";
import { Shard } from "../shards/shard.ts";
import { Checkpoints } from "./checkpoints.ts";
import { CONTENT_HEADER, JOURNAL_BYTES_MAX } from "./journal.ts";
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

/** A host at a time that stands still, whose journal is written down only when the clock is released. */
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

/** Keeps what is written to the state stream from now on, by subject. */
function watchWrites({ bus, subjects }: World): string[] {
  const written: string[] = [];
  bus.connection.subscribe(subjects.all, {
    callback: (_, { subject }) => void written.push(subjects.bucketKey(subject)),
  });
  return written;
}

const journalsNamed = async ({ bus, subjects }: World) => {
  const named: string[] = [];
  for (let shard = 0; shard < SHARDS; shard++) {
    const message = await bus.readLast(subjects.stream, subjects.epoch(shard));
    named.push(...Epoch.parse(message?.json()).journals);
  }
  return named;
};

describe("the journal", function () {
  this.timeout(120_000);

  it("stores the changes of many actors as one message, and a moment later in their keys", async () => {
    await using world = await startWorld({ definitions });
    const host = await world.host();
    await increment(world);
    const written = watchWrites(world);
    await increment(world);
    const commits = written.filter((key) => key.startsWith("journal."));
    expect(commits.length).to.be.within(1, 10);
    for (const key of KEYS) {
      await until(`${key} holds it`, async () => (await storedCount(world, key)) === 2);
    }
    const stored = await world.bus.readLast(
      world.subjects.stream,
      world.subjects.value("counter.c0"),
    );
    expect(Number(stored?.header.get(CONTENT_HEADER))).to.be.within(1, stored?.seq ?? 0);
    expect(await journalsNamed(world)).to.deep.equal([]);
    await host.stop();
    expect(await world.count(world.subjects.stream, world.subjects.journals)).to.equal(0);
  });

  it("is read by the next owner of a killed host, with rows and outbox, and removed then", async () => {
    await using world = await startWorld({ definitions });
    const dying = new ActorProcess({ url: world.url, name: "dying" });
    await dying.ready;
    // Only the last commits are in the journal alone. Earlier ones have been checkpointed.
    for (let round = 1; round <= 20; round++) {
      await Promise.all([
        increment(world),
        world.client.call(counter, "rows", "setRows", { rows: { a: round, [`r${round}`]: round } }),
        world.client.call(counter, "giver", "give", { to: "taker", by: 1 }),
      ]);
    }
    await world.client.call(counter, "rows", "setRows", { rows: { r1: null } });
    await dying.kill();
    const journal = () => world.count(world.subjects.stream, world.subjects.journals);
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
    expect(await journalsNamed(world)).to.deep.equal([]);
    await until("nobody keeps its journal", async () => {
      const names = await world.bus.subjectsOf(world.subjects.stream, world.subjects.journals);
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
    // An earlier pending write of the same reminder must not overwrite it later.
    await remind(10_000);
    await remind(1_000);
    expect(schedules).to.deep.equal([at(1_000)]);
    await world.client.call(counter, "a", "increment", { by: 1 });
    expect(await storedCount(world, "a")).to.equal(0);
    clock.release();
    await until("it is written down", async () => (await storedCount(world, "a")) === 1);
    expect(schedules).to.deep.equal([at(1_000)]);
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

  it("replay() writes only what is missing, however often it runs", async () => {
    await using world = await startWorld({ definitions });
    const { bus, subjects } = world;
    const jetstream = bus.jetstream.jetstream();
    const value = (key: string) => subjects.value(`counter.${key}`);
    const commit = (number: number, keys: string[], count: number) => ({
      number,
      entries: keys.map((key) => ({
        shard: 5,
        owner: `counter.${key}`,
        puts: { [`counter.${key}`]: { state: { count } }, [`counter.${key}.=.r`]: count },
        removed: [`counter.${key}.=.gone`],
      })),
    });
    const publish = (subject: string, content: unknown) =>
      jetstream.publish(subject, JSON.stringify(content));
    await publish(value("earlier"), { state: { count: 1 } });
    await publish(subjects.row("counter.earlier", "gone"), 1);
    await publish(subjects.journal("one", 0), commit(0, ["noted"], 1));
    await publish(subjects.journal("one", 1), commit(1, ["earlier", "later", "both"], 2));
    await publish(subjects.journal("two", 0), commit(0, ["both"], 3));
    await publish(subjects.journalNote("one"), { below: 1, from: 0, lost: {} });
    await publish(value("later"), { state: { count: 9 } });
    const { seq } = await publish(subjects.epoch(5), { host: "next", journals: ["one", "two"] });
    const replay = new JournalReplay(bus, subjects);
    const fence = { sequence: seq, subject: subjects.epoch(5) };
    const run = (shard: number) => replay.replay(shard, fence, ["one", "two", "never"]);
    await run(4);
    expect(await storedCount(world, "earlier")).to.equal(1);
    await Promise.all([run(5), run(5)]);
    await run(5);
    expect(await storedCount(world, "noted")).to.equal(0);
    expect(await storedCount(world, "earlier")).to.equal(2);
    expect(await storedCount(world, "later")).to.equal(9);
    expect(await storedCount(world, "both")).to.equal(3);
    const written = await world.written();
    await run(5);
    expect(await world.written(), "a repetition").to.equal(written);
    await publish(subjects.epoch(5), { host: "another" });
    await publish(subjects.journal("two", 1), commit(1, ["fenced"], 4));
    const error = await run(5).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(WriteRefused);
    expect(await storedCount(world, "fenced")).to.equal(0);
  });

  it("replay() begins where the note says, and reads of a lost shard what the note says", async () => {
    await using world = await startWorld({ definitions });
    const { bus, subjects } = world;
    const jetstream = bus.jetstream.jetstream();
    const publish = (subject: string, content: unknown) =>
      jetstream.publish(subject, JSON.stringify(content));
    const commit = (number: number, shard: number, owner: string) => {
      const puts = { [owner]: { state: { count: number } } };
      return { number, entries: [{ shard, owner, puts, removed: [] }] };
    };
    await publish(subjects.journal("one", 0), "nobody could read this");
    const { seq: from } = await publish(subjects.journal("one", 1), commit(1, 3, "counter.lost"));
    await publish(subjects.journal("one", 2), commit(2, 4, "counter.gone"));
    await publish(subjects.journal("one", 3), commit(3, 4, "counter.pending"));
    await publish(subjects.journalNote("one"), { below: 3, from, lost: { 3: 1 } });
    const replay = new JournalReplay(bus, subjects);
    await Promise.all(
      [3, 4, 5].map(async (shard) => {
        const { seq: sequence } = await publish(subjects.epoch(shard), { host: "next" });
        await replay.replay(shard, { sequence, subject: subjects.epoch(shard) }, ["one"]);
      }),
    );
    expect(await storedCount(world, "lost")).to.equal(1);
    expect(await storedCount(world, "gone"), "written down, and removed since").to.equal(0);
    expect(await storedCount(world, "pending")).to.equal(3);
  });

  it("a failed checkpoint is retried a second later, not at once", async () => {
    await using world = await startWorld({ definitions });
    const { bus, subjects } = world;
    let failures = 0;
    let due = Promise.withResolvers<void>();
    const checkpoints = new Checkpoints({
      bus,
      // No stream has them, so nobody answers.
      subjects: stateSubjects("nowhere"),
      clock: systemClock,
      host: { id: "h", isReplayed: () => false },
      isDue: () => due.resolve(),
      failed: async () => {
        failures += 1;
      },
    });
    const shard = new Shard({
      number: 0,
      epoch: 1,
      host: "h",
      subjects,
      outbox: new Outbox(undefined, { sent: 0, waiting: [] }),
      sentRevision: 0,
    });
    const puts = new Map([[subjects.value("counter.a"), "{}"]]);
    checkpoints.journal.record(1, JOURNAL_BYTES_MAX, [{ shard, owner: "counter.a", puts }]);
    for (let round = 1; round <= 2; round++) {
      expect(checkpoints.isNow).to.equal(true);
      await checkpoints.write();
      expect(failures).to.equal(round);
      expect(checkpoints.isNow).to.equal(false);
      await due.promise;
      due = Promise.withResolvers();
    }
    checkpoints.drop(shard);
    expect(checkpoints.journal.holds(shard)).to.equal(false);
    checkpoints.stop();
  });

  it("is not overwritten while another host may need it, nor after an unnoticed move of a shard", async () => {
    await using world = await startWorld({ definitions });
    await world.host();
    await increment(world);
    const { epoch } = world.subjects;
    // A shard that nobody counts in; the host hears of it a moment later, and takes it back.
    const free = freeShard();
    const ghost = JSON.stringify({ host: "ghost" });
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

  it("takes actors up to JOURNAL_ACTOR_MESSAGES_MAX; past it, or past JOURNAL_COMMIT_BYTES_MAX, writes the keys at once", async () => {
    await using world = await startWorld({ definitions });
    await world.host({ clock: new HoldingClock(CHECKPOINT_MS) });
    const fill = async (key: string, count: number, characters: number) => {
      await world.client.call(probe, key, "fillRows", { from: 0, count, characters });
      return storedRows(world, `probe.${key}`);
    };
    // Rows, their mark and the value.
    expect(await fill("at", JOURNAL_ACTOR_MESSAGES_MAX - 2, 10)).to.equal(0);
    expect(await fill("past", JOURNAL_ACTOR_MESSAGES_MAX - 1, 10)).to.equal(
      JOURNAL_ACTOR_MESSAGES_MAX,
    );
    expect(TRANSITION_ROWS_MAX).to.be.greaterThan(JOURNAL_ACTOR_MESSAGES_MAX);
    const wide = Math.floor(ROW_BYTES_MAX * 0.9);
    const fitting = Math.floor(JOURNAL_COMMIT_BYTES_MAX / (wide + 100));
    expect(await fill("light", fitting, wide)).to.equal(0);
    expect(await fill("heavy", fitting + 1, wide)).to.equal(fitting + 2);
  });

  it("is written to the keys before an actor is loaded, together with writes beside it", async () => {
    await using world = await startWorld({ definitions });
    await world.host();
    await world.client.call(probe, "f", "setRow", { row: "a", value: "1" });
    const count = JOURNAL_ACTOR_MESSAGES_MAX;
    // The rows are written to their keys at once, together with the actor's pending rows and mark.
    await world.client.call(probe, "f", "fillRows", { from: 0, count, characters: 10 });
    expect(await storedRows(world, "probe.f")).to.equal(count + 2);
    await world.client.call(probe, "f", "setRow", { row: "b", value: "1" });
    await world.client.call(probe, "f", "forget", { to: "g" });
    expect(await world.client.call(probe, "f", "setRow", { row: "c", value: "1" })).to.deep.equal({
      rows: 0,
    });
  });
});

function freeShard(): number {
  const used = new Set(KEYS.map((key) => shardOf(addressOf("counter", key))));
  for (let shard = 0; shard < SHARDS; shard++) if (!used.has(shard)) return shard;
  throw new Error("every shard is used");
}

/** Rows with their mark. */
const storedRows = ({ bus, subjects }: World, address: string) =>
  bus.subjectsOf(subjects.stream, subjects.rows(address)).then((found) => found.length);
