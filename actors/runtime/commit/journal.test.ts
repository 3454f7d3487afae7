import { expect } from "chai";
import { stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { Outbox } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import {
  JOURNAL_BYTES_MAX,
  JOURNAL_OWNERS_MAX,
  JOURNAL_SLOTS,
  Journal,
  type JournalEntry,
  StoredCommit,
} from "./journal.ts";

const subjects = stateSubjects(stateBucket(0));

const newShard = (number = 0) =>
  new Shard({
    number,
    epoch: 1,
    host: "h",
    subjects,
    outbox: new Outbox(undefined, { sent: 0, waiting: [] }),
    sentRevision: 0,
  });

const entry = (shard: Shard, key: string, text = "{}"): JournalEntry => ({
  shard,
  owner: `counter.${key}`,
  puts: new Map([[subjects.value(`counter.${key}`), text]]),
});

function newJournal() {
  const replayed = new Set<Shard>();
  const journal = new Journal({ id: "h", subjects, isReplayed: (shard) => replayed.has(shard) });
  return { journal, replayed };
}

describe("Journal", () => {
  it("is stored as JSON that an operator can read: keys of the bucket, and removed keys", () => {
    const { journal } = newJournal();
    const shard = newShard(7);
    const puts = new Map([
      [subjects.row("counter.a", "r"), "1"],
      [subjects.row("counter.a", "gone"), null],
      [subjects.value("counter.a"), '{"state":{"text":"“é”"}}'],
    ]);
    const text = journal.encode([{ shard, owner: "counter.a", puts }, entry(shard, "b")]);
    expect(StoredCommit.parse(JSON.parse(text))).to.deep.equal({
      number: 0,
      entries: [
        {
          shard: 7,
          owner: "counter.a",
          puts: { "counter.a.=.r": 1, "counter.a": { state: { text: "“é”" } } },
          removed: ["counter.a.=.gone"],
        },
        { shard: 7, owner: "counter.b", puts: { "counter.b": {} }, removed: [] },
      ],
    });
  });

  it("has a slot for JOURNAL_SLOTS commits, and for one more when the oldest is in its keys", () => {
    const { journal } = newJournal();
    const shard = newShard();
    const first = journal.subject;
    for (let number = 0; number < JOURNAL_SLOTS; number++) {
      expect(journal.hasRoomFor(0), String(number)).to.equal(true);
      journal.record(number + 1, 1, [entry(shard, `k${number}`)]);
    }
    expect(journal.hasRoomFor(0)).to.equal(false);
    expect(journal.isHalfFull).to.equal(true);
    const part = journal.checkpoint(1);
    expect(part.pending.map(({ owner }) => owner)).to.deep.equal(["counter.k0"]);
    expect(part.note.below).to.equal(1);
    journal.written(part);
    expect(journal.hasRoomFor(0)).to.equal(true);
    expect(journal.subject).to.equal(first);
  });

  it("has room up to JOURNAL_BYTES_MAX and JOURNAL_OWNERS_MAX, and is half full at half of each", () => {
    const { journal } = newJournal();
    const shard = newShard();
    const half = JOURNAL_BYTES_MAX / 2;
    journal.record(1, half, [entry(shard, "a")]);
    expect(journal.isHalfFull).to.equal(false);
    expect(journal.hasRoomFor(half)).to.equal(true);
    expect(journal.hasRoomFor(half + 1)).to.equal(false);
    journal.record(2, 1, [entry(shard, "a"), entry(shard, "b")]);
    expect(journal.isHalfFull).to.equal(true);
    journal.absorb("counter.a");
    expect(journal.isHalfFull, "b came with the second").to.equal(false);
    journal.absorb("counter.b");
    const many = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => entry(shard, `k${from + index}`));
    journal.record(3, 1, many(0, JOURNAL_OWNERS_MAX / 2));
    expect(journal.isHalfFull).to.equal(false);
    journal.record(4, 1, many(JOURNAL_OWNERS_MAX / 2, JOURNAL_OWNERS_MAX - 1));
    expect(journal.isHalfFull).to.equal(true);
    expect(journal.hasRoomFor(1)).to.equal(true);
    journal.record(5, 1, many(JOURNAL_OWNERS_MAX - 1, JOURNAL_OWNERS_MAX));
    expect(journal.hasRoomFor(1)).to.equal(false);
  });

  it("checkpoint() takes whole owners, the longest waiting first, with the newest value of each key", () => {
    const { journal } = newJournal();
    const shard = newShard();
    const row = subjects.row("counter.a", "r");
    journal.record(10, 1, [entry(shard, "a", "1"), entry(shard, "b", "1")]);
    const puts = new Map([
      [row, "1"],
      [subjects.value("counter.a"), "2"],
    ]);
    journal.record(11, 1, [{ shard, owner: "counter.a", puts }]);
    expect(journal.isWrittenBelow(0)).to.equal(true);
    expect(journal.isWrittenBelow(1)).to.equal(false);
    const first = journal.checkpoint(2);
    expect(
      first.pending.map(({ owner, sequence, puts: all }) => [owner, sequence, [...all]]),
    ).to.deep.equal([
      [
        "counter.a",
        11,
        [
          [row, "1"],
          [subjects.value("counter.a"), "2"],
        ],
      ],
    ]);
    expect(first.note.below, "b is of the first commit").to.equal(0);
    journal.written(first);
    const second = journal.checkpoint(2);
    expect(second.pending.map(({ owner }) => owner)).to.deep.equal(["counter.b"]);
    expect(second.note).to.deep.equal({ below: 2, from: 12, lost: {} });
    journal.written(second);
    expect(journal.isWrittenBelow(2)).to.equal(true);
    expect(journal.isEmpty).to.equal(true);
  });

  it("keeps the slots of a lost shard until its next owner has written their content to its keys", () => {
    const { journal, replayed } = newJournal();
    const [lost, kept] = [newShard(0), newShard(1)];
    journal.record(1, 1, [entry(lost, "a"), entry(kept, "b")]);
    lost.status = "gone";
    journal.drop(lost);
    expect(journal.holds(lost)).to.equal(false);
    const part = journal.checkpoint(10);
    expect(part.pending.map(({ owner }) => owner)).to.deep.equal(["counter.b"]);
    expect(part.note, "nothing may hide it").to.deep.equal({ below: 1, from: 1, lost: { 0: 0 } });
    journal.written(part);
    for (let number = 1; number < JOURNAL_SLOTS; number++) journal.record(number, 1, []);
    expect(journal.hasRoomFor(0)).to.equal(false);
    expect(journal.isEmpty).to.equal(false);
    replayed.add(lost);
    expect(journal.hasRoomFor(0)).to.equal(true);
    expect(journal.isEmpty).to.equal(true);
  });

  it("keeps the slot of a commit whose shard was lost meanwhile, and of one with unknown outcome", () => {
    for (const unknown of [false, true]) {
      const { journal, replayed } = newJournal();
      const shard = newShard();
      shard.status = "gone";
      if (unknown) journal.skip([shard]);
      else journal.record(1, 1, [entry(shard, "a")]);
      expect(journal.next).to.equal(1);
      expect(journal.oldest).to.equal(0);
      const note = { below: 1, from: 1, lost: { 0: 0 } };
      expect(journal.checkpoint(10)).to.deep.equal({ pending: [], note });
      replayed.add(shard);
      expect(journal.oldest).to.equal(1);
    }
  });
});
