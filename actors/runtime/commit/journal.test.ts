import { expect } from "chai";
import { JOURNAL_MESSAGE_BYTES_MAX, JOURNAL_MESSAGES_MAX } from "../../../schemas/limits.ts";
import { stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import type { Write } from "../bus/atomic-batch.ts";
import { Outbox } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import {
  JOURNAL_BYTES_MAX,
  JOURNAL_KEPT_BYTES_MAX,
  JOURNAL_KEYS_MAX,
  Journal,
  type JournalEntry,
  StoredCommit,
} from "./journal.ts";

const subjects = stateSubjects(stateBucket(0));
const EPOCH = 30;
const ALL = { messagesMax: 1_000, bytesMax: 1_000_000 };

const newShard = (number = 0) =>
  new Shard({
    number,
    epoch: EPOCH,
    host: "h",
    subjects,
    outbox: new Outbox(undefined),
    sentRevisions: [0],
  });

const entry = (shard: Shard, key: string, text = "{}"): JournalEntry => ({
  shard,
  owner: `counter.${key}`,
  puts: new Map([[subjects.value(`counter.${key}`), text]]),
});

const newJournal = () => new Journal({ id: "h", subjects });
const fromOf = (journal: Journal, last: number) =>
  StoredCommit.parse(JSON.parse(journal.encode(1, last, [])[0] ?? "")).from;
const keysOf = (writes: readonly { subject: string }[]) =>
  writes.map(({ subject }) => subjects.bucketKey(subject));

describe("Journal", () => {
  it("is stored as JSON that an operator can read: keys of the bucket, and removed keys", () => {
    const shard = newShard(7);
    const puts = new Map([
      [subjects.row("counter.a", "r"), "1"],
      [subjects.row("counter.a", "gone"), null],
      [subjects.value("counter.a"), '{"state":{"text":"“é”"}}'],
    ]);
    const entries = [{ shard, owner: "counter.a", puts }, entry(shard, "b")];
    const texts = newJournal().encode(3, 41, entries);
    expect(texts.map((text) => StoredCommit.parse(JSON.parse(text)))).to.deep.equal([
      {
        number: 3,
        from: 42,
        entries: [
          {
            shard: 7,
            epoch: EPOCH,
            puts: { "counter.a.=.r": 1, "counter.a": { state: { text: "“é”" } } },
            removed: ["counter.a.=.gone"],
          },
          { shard: 7, epoch: EPOCH, puts: { "counter.b": {} }, removed: [] },
        ],
      },
    ]);
  });

  it("encode() makes one message of JOURNAL_MESSAGE_BYTES_MAX, and several past it, with all puts in order", () => {
    const shard = newShard();
    const room = JOURNAL_MESSAGE_BYTES_MAX / 3;
    const wide = (count: number, bytes: number): JournalEntry => {
      const rows = Array.from({ length: count }, (_, index) => `r${index}`);
      const puts = rows.map(
        (row) => [subjects.row("counter.a", row), JSON.stringify("x".repeat(bytes))] as const,
      );
      return { shard, owner: "counter.a", puts: new Map(puts) };
    };
    expect(newJournal().encode(1, 0, [wide(3, room - 100)])).to.have.length(1);
    const texts = newJournal().encode(1, 0, [wide(3, room), entry(shard, "b")]);
    expect(texts).to.have.length(2);
    for (const text of texts) expect(text.length).to.be.below(1_048_576);
    const parts = texts.map((text) => StoredCommit.parse(JSON.parse(text)));
    expect(parts.map(({ number, from }) => [number, from])).to.deep.equal([
      [1, 1],
      [1, 1],
    ]);
    expect(
      parts.flatMap(({ entries }) => entries.flatMap(({ puts }) => Object.keys(puts))),
    ).to.deep.equal(["counter.a.=.r0", "counter.a.=.r1", "counter.a.=.r2", "counter.b"]);
  });

  it("has room for JOURNAL_MESSAGES_MAX messages, and for one more when the oldest is in its keys", () => {
    const journal = newJournal();
    const shard = newShard();
    for (let number = 0; number < JOURNAL_MESSAGES_MAX; number++) {
      expect(journal.hasRoom, String(number)).to.equal(true);
      journal.record(number + 1, ["{}"], [entry(shard, `k${number}`)]);
    }
    expect(journal.hasRoom).to.equal(false);
    expect(journal.isHalfFull).to.equal(true);
    expect(keysOf(journal.checkpoint({ ...ALL, messagesMax: 1 }))).to.deep.equal(["counter.k0"]);
    expect(journal.hasRoom, "not written yet").to.equal(false);
    journal.written();
    expect(journal.hasRoom).to.equal(true);
  });

  it("has room up to JOURNAL_BYTES_MAX and JOURNAL_KEYS_MAX, and is half full at half of each", () => {
    const journal = newJournal();
    const shard = newShard();
    const half = "x".repeat(JOURNAL_BYTES_MAX / 2);
    journal.record(1, [half.slice(1)], [entry(shard, "a")]);
    expect(journal.isHalfFull).to.equal(false);
    journal.record(2, ["x"], [entry(shard, "a")]);
    expect(journal.isHalfFull).to.equal(true);
    journal.record(3, [half.slice(1)], [entry(shard, "a")]);
    expect(journal.hasRoom).to.equal(true);
    journal.record(4, ["x"], [entry(shard, "a")]);
    expect(journal.hasRoom).to.equal(false);
    journal.checkpoint(ALL);
    journal.written();
    const many = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => entry(shard, `k${from + index}`));
    journal.record(5, [""], many(1, JOURNAL_KEYS_MAX / 2));
    expect(journal.isHalfFull).to.equal(false);
    journal.record(6, [""], many(0, 1));
    expect(journal.isHalfFull).to.equal(true);
    journal.record(7, [""], many(JOURNAL_KEYS_MAX / 2, JOURNAL_KEYS_MAX - 1));
    expect(journal.hasRoom).to.equal(true);
    journal.record(8, [""], many(JOURNAL_KEYS_MAX - 1, JOURNAL_KEYS_MAX));
    expect(journal.hasRoom).to.equal(false);
  });

  it("counts each key of an actor once, until it is written", () => {
    const journal = newJournal();
    const shard = newShard();
    const rows = (count: number): JournalEntry => {
      const names = Array.from({ length: count }, (_, row) => subjects.row("counter.a", `${row}`));
      return { ...entry(shard, "a"), puts: new Map(names.map((name) => [name, "{}"])) };
    };
    journal.record(1, [""], [rows(JOURNAL_KEYS_MAX - 1)]);
    journal.record(2, [""], [rows(JOURNAL_KEYS_MAX - 1)]);
    expect(journal.hasRoom).to.equal(true);
    journal.checkpoint({ ...ALL, messagesMax: 1 });
    journal.record(3, [""], [rows(1)]);
    expect(journal.hasRoom, "in both maps").to.equal(false);
    journal.notWritten();
    expect(journal.hasRoom, "in one again").to.equal(true);
    journal.record(4, [""], [rows(JOURNAL_KEYS_MAX)]);
    expect(journal.hasRoom).to.equal(false);
    journal.checkpoint({ ...ALL, messagesMax: JOURNAL_KEYS_MAX });
    expect(journal.hasRoom, "not written yet").to.equal(false);
    journal.written();
    expect(journal.isEmpty).to.equal(true);
    expect(journal.isHalfFull).to.equal(false);
  });

  it("counts bytes, not characters", () => {
    const journal = newJournal();
    journal.record(1, ["é".repeat(JOURNAL_BYTES_MAX / 4)], [entry(newShard(), "a")]);
    expect(journal.isHalfFull).to.equal(true);
  });

  it("takeUnneeded() names written commits past JOURNAL_KEPT_BYTES_MAX, once a stored commit says that they are", () => {
    const journal = newJournal();
    const shard = newShard();
    const commit = (sequence: number, text: string) => {
      journal.encode(sequence, sequence - 1, []);
      journal.record(sequence, [text], [entry(shard, "a")]);
      journal.checkpoint(ALL);
      journal.written();
    };
    commit(1, "x".repeat(JOURNAL_KEPT_BYTES_MAX));
    commit(2, "x");
    expect(journal.takeUnneeded(), "at the limit").to.equal(undefined);
    journal.encode(3, 2, []);
    expect(journal.takeUnneeded(), "not stored yet").to.equal(undefined);
    journal.record(3, ["x"], [entry(shard, "a")]);
    expect(journal.takeUnneeded()).to.equal(3);
    commit(4, "x".repeat(JOURNAL_KEPT_BYTES_MAX));
    expect(journal.takeUnneeded(), "removed before").to.equal(undefined);
  });

  it("checkpoint() takes the longest pending first, each key with its newest value, and a value after its rows", () => {
    const journal = newJournal();
    const shard = newShard();
    const row = subjects.row("counter.a", "r");
    journal.record(10, ["", ""], [entry(shard, "a", "1"), entry(shard, "b", "1")]);
    const puts = new Map([
      [row, "1"],
      [subjects.value("counter.a"), "2"],
    ]);
    journal.record(12, [""], [{ shard, owner: "counter.a", puts }]);
    expect(fromOf(journal, 12)).to.equal(10);
    expect(keysOf(journal.checkpoint({ ...ALL, messagesMax: 1 }))).to.deep.equal(["counter.a.=.r"]);
    journal.written();
    expect(fromOf(journal, 12), "b is of the first commit").to.equal(10);
    expect(journal.isWrittenBelow(1)).to.equal(false);
    expect(keysOf(journal.checkpoint({ ...ALL, messagesMax: 1 }))).to.deep.equal(["counter.b"]);
    journal.written();
    expect(fromOf(journal, 12), "the value of a is missing").to.equal(12);
    const [value] = journal.checkpoint(ALL);
    expect(value).to.include({ subject: subjects.value("counter.a"), payload: "2" });
    expect(journal.isEmpty).to.equal(false);
    journal.written();
    expect(fromOf(journal, 12)).to.equal(13);
    expect(journal.isWrittenBelow(3)).to.equal(true);
    expect(journal.isEmpty).to.equal(true);
  });

  it("lets a takeover read few commits of an owner that changes more keys than checkpoints write", () => {
    const journal = newJournal();
    const shard = newShard();
    const KEYS = 10;
    for (let commit = 1; commit <= 100; commit++) {
      const names = Array.from({ length: KEYS }, (_, row) => `r${KEYS * commit + row}`);
      const puts = new Map(names.map((name) => [subjects.row("counter.a", name), "{}"]));
      journal.record(commit, ["x"], [{ shard, owner: "counter.a", puts }]);
      journal.checkpoint({ ...ALL, messagesMax: KEYS - 1 });
      journal.written();
    }
    // Each checkpoint leaves one key. Of 100 commits, the last 10 have the keys that are left.
    expect(fromOf(journal, 100)).to.equal(91);
    expect(journal.isWrittenBelow(90)).to.equal(true);
  });

  it("keeps each newest put in its key or in the commits that a takeover reads, in any order of steps", () => {
    const seed = SeededRandom.newSeed();
    const random = new SeededRandom(seed);
    for (let round = 0; round < 100; round++) {
      const journal = newJournal();
      const shard = newShard();
      const commits: Map<string, string | null>[] = [];
      const keys = new Map<string, string>();
      let writing: readonly Write[] | undefined;
      for (let step = 0; step < 40; step++) {
        if (random.chance(1 / 2)) {
          const owners = ["a", "b", "c"].filter(() => random.chance(1 / 2));
          const entries = owners.map((owner): JournalEntry => {
            const rows = ["r", "s", "t", "u"].filter(() => random.chance(1 / 2));
            const names = rows.map((row) => subjects.row(`counter.${owner}`, row));
            const all = [...names, subjects.value(`counter.${owner}`)];
            const puts = new Map(all.map((subject) => [subject, `${commits.length}`]));
            return { shard, owner: `counter.${owner}`, puts };
          });
          commits.push(new Map(entries.flatMap(({ puts }) => [...puts])));
          journal.record(commits.length, ["x"], entries);
        } else if (!writing) {
          writing = journal.checkpoint({ ...ALL, messagesMax: random.integer(1, 5) });
        } else {
          const isWritten = random.chance(2 / 3);
          for (const { subject, payload } of isWritten ? writing : []) {
            keys.set(subject, `${payload}`);
          }
          if (isWritten) journal.written();
          else journal.notWritten();
          writing = undefined;
        }
        const read = commits.slice(fromOf(journal, commits.length) - 1);
        const found = new Map([...keys, ...read.flatMap((puts) => [...puts])]);
        const newest = new Map(commits.flatMap((puts) => [...puts]));
        expect(found, `seed ${seed}, round ${round}, step ${step}`).to.deep.equal(newest);
      }
    }
  });

  it("notWritten() keeps the order, and later values over those that were not written", () => {
    const journal = newJournal();
    const [one, other] = [newShard(0), newShard(1)];
    journal.record(1, [""], [entry(one, "a", "1")]);
    journal.record(2, [""], [entry(other, "b", "1")]);
    journal.checkpoint({ ...ALL, messagesMax: 1 });
    journal.record(3, [""], [entry(one, "a", "2")]);
    expect(journal.isPending("counter.a", subjects.value("counter.a"))).to.equal(true);
    expect(journal.holds(one)).to.equal(true);
    journal.notWritten();
    expect(fromOf(journal, 3)).to.equal(1);
    const writes = journal.checkpoint(ALL);
    expect(writes.map(({ payload }) => payload)).to.deep.equal(["2", "1"]);
    journal.written();
    expect(journal.holds(one) || journal.holds(other)).to.equal(false);
    expect(journal.isPending("counter.a")).to.equal(false);
  });
});
