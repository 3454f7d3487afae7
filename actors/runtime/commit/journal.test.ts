import { expect } from "chai";
import { JOURNAL_MESSAGE_BYTES_MAX, JOURNAL_MESSAGES_MAX } from "../../../schemas/limits.ts";
import { stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
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
    expect(fromOf(journal, 12), "its value is missing").to.equal(10);
    const [value] = journal.checkpoint({ ...ALL, messagesMax: 1 });
    expect(value).to.include({ subject: subjects.value("counter.a"), payload: "2" });
    journal.written();
    expect(fromOf(journal, 12), "b is of the first commit").to.equal(10);
    expect(journal.isWrittenBelow(1)).to.equal(false);
    expect(keysOf(journal.checkpoint(ALL))).to.deep.equal(["counter.b"]);
    expect(journal.isEmpty).to.equal(false);
    journal.written();
    expect(fromOf(journal, 12)).to.equal(13);
    expect(journal.isWrittenBelow(3)).to.equal(true);
    expect(journal.isEmpty).to.equal(true);
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
