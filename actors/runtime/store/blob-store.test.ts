import { randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import {
  BLOB_CHUNK_BYTES,
  BLOB_CHUNKS_IN_FLIGHT,
  BLOB_NAME_CHARS_MAX,
} from "../../../schemas/limits.ts";
import { blobSubjects, STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { answerWrites, SUBJECT_IN_PROCESS } from "../../../scripts/testing/answer-writes.ts";
import { patternAt } from "../../../scripts/testing/echo-worker.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import { systemClock } from "../lib/clock.ts";
import { BlobStore, SINGLE_PUTS_MAX } from "./blob-store.ts";

const MB = 1024 * 1024;

describe("BlobStore", function () {
  this.timeout(180_000);
  let world: World;
  let blobs: BlobStore;
  let count = 0;
  const newName = () => `crawl.test.${++count}`;

  before(async () => {
    world = await startWorld();
    blobs = new BlobStore(world.bus, systemClock);
  });
  after(() => world[Symbol.asyncDispose]());

  for (const [what, bytes] of [
    ["no bytes", 0],
    ["one byte", 1],
    ["one chunk", BLOB_CHUNK_BYTES],
    ["one chunk and a byte", BLOB_CHUNK_BYTES + 1],
    ["more chunks than are read ahead", (BLOB_CHUNKS_IN_FLIGHT + 3) * BLOB_CHUNK_BYTES + 7],
  ] as const) {
    it(`get() returns ${what}, however they were put`, async () => {
      const content = patternAt(0, bytes);
      for (const given of [content, inPieces(content, 300_007), inPieces(content, bytes || 1)]) {
        const name = newName();
        const { storedBytes, ...stored } = await blobs.put(name, given);
        expect(stored).to.deep.equal({ name, bytes, wasThere: false });
        expect(content.equals(await readAll(blobs, name))).to.equal(true);
        expect(await blobs.size(name)).to.equal(bytes);
      }
    });
  }

  it("put() repeats the write of a chunk until it is surely stored, also while another write is in process", async () => {
    const name = newName();
    const content = patternAt(0, 2 * BLOB_CHUNK_BYTES);
    const isChunk = (subject: string) =>
      subject !== blobSubjects(name).head && subject.includes(name);
    // A leader without followers has the first write in process, and refuses the second for it. The next leader has
    // neither.
    const answers = ["none", SUBJECT_IN_PROCESS, SUBJECT_IN_PROCESS] as const;
    const end = answerWrites(world.bus, isChunk, answers);
    await blobs.put(name, content).finally(end);
    expect(content.equals(await readAll(blobs, name))).to.equal(true);
  });

  it("put() repeats the write of a head that another write in process refuses", async () => {
    const name = newName();
    const isHead = (subject: string) => subject === blobSubjects(name).head;
    const end = answerWrites(world.bus, isHead, ["none", SUBJECT_IN_PROCESS]);
    await blobs.put(name, patternAt(0, 100)).finally(end);
    expect(patternAt(0, 100).equals(await readAll(blobs, name))).to.equal(true);
  });

  it("reading leaves no consumers behind, of which a stream has a limited number", async () => {
    for (const bytes of [100, (BLOB_CHUNKS_IN_FLIGHT + 3) * BLOB_CHUNK_BYTES]) {
      const name = newName();
      await blobs.put(name, patternAt(0, bytes));
      for (let i = 0; i < 10; i++) await readAll(blobs, name);
      await blobs.part(name, { start: 10, end: 50 }).next();
      await blobs.names("crawl");
    }
    const { state } = await world.bus.jetstream.streams.info(STREAMS.crawl);
    expect(state.consumer_count).to.equal(0);
  });

  it("part() returns any range of bytes, and reads only the chunks with them", async () => {
    for (const bytes of [1, 100, 2 * BLOB_CHUNK_BYTES, 3 * BLOB_CHUNK_BYTES + 7]) {
      const content = patternAt(0, bytes);
      const name = newName();
      await blobs.put(name, content);
      const places = [
        0,
        1,
        BLOB_CHUNK_BYTES - 1,
        BLOB_CHUNK_BYTES,
        2 * BLOB_CHUNK_BYTES,
        bytes - 1,
      ];
      const inside = places.filter((place) => place < bytes);
      for (const start of inside) {
        for (const end of inside.filter((place) => place >= start)) {
          const part = Buffer.concat(await Array.fromAsync(blobs.part(name, { start, end })));
          expect(part.equals(content.subarray(start, end + 1)), `${start}-${end}`).to.equal(true);
        }
      }
    }
    const absent = Array.fromAsync(blobs.part(newName(), { start: 0, end: 1 }));
    expect(await codeOf(absent)).to.equal("not_found");
  });

  it("put() again succeeds with the same content, and refuses another without a change", async () => {
    for (const bytes of [10, 3 * BLOB_CHUNK_BYTES]) {
      const name = newName();
      await blobs.put(name, patternAt(0, bytes));
      const stored = await chunksOf(name);
      await blobs.put(name, patternAt(0, bytes));
      for (const other of [patternAt(1, bytes), patternAt(0, bytes + 1), patternAt(0, 0)]) {
        expect(await codeOf(blobs.put(name, other))).to.equal("conflict");
      }
      expect(patternAt(0, bytes).equals(await readAll(blobs, name))).to.equal(true);
      expect(await chunksOf(name)).to.equal(stored);
    }
  });

  it("put() again of a blob of one chunk removes nothing from the stream", async () => {
    const { connection } = world.bus;
    const removals: string[] = [];
    const heard = connection.subscribe("$JS.API.STREAM.PURGE.>", {
      callback: (_, { subject }) => void removals.push(subject),
    });
    await connection.flush();
    const [name, content] = [newName(), patternAt(0, 100)];
    await blobs.put(name, content);
    expect((await blobs.put(name, content)).wasThere).to.equal(true);
    await connection.flush();
    heard.unsubscribe();
    expect(removals).to.deep.equal([]);
  });

  it("put() by two writers at once leaves one whole blob, and refuses only another content", async () => {
    const [name, bytes] = [newName(), 3 * BLOB_CHUNK_BYTES];
    const contents = [0, 0, 1, 1].map((offset) => patternAt(offset, bytes));
    const results = await Promise.allSettled(contents.map((one) => blobs.put(name, one)));
    const stored = await readAll(blobs, name);
    for (const [index, { status }] of results.entries()) {
      expect(status).to.equal(contents[index]?.equals(stored) ? "fulfilled" : "rejected");
    }
    expect(await chunksOf(name)).to.equal(3);
  });

  it("get() refuses a missing, half-written or half-removed blob", async () => {
    const name = newName();
    expect(await blobs.has(name)).to.equal(false);
    expect(await codeOf(readAll(blobs, name))).to.equal("not_found");
    const dying = new Error("died");
    const put = blobs.put(
      name,
      (async function* () {
        yield patternAt(0, 2 * MB);
        throw dying;
      })(),
    );
    expect(await put.catch((error) => error)).to.equal(dying);
    // A killed writer leaves a chunk without a head.
    const left = blobSubjects(name).chunk("somebody", 0);
    await writeAtomically(world.bus, [{ subject: left, payload: "half" }]);
    expect(await codeOf(readAll(blobs, name))).to.equal("not_found");
    expect(await chunksOf(name)).to.equal(1);
    await blobs.put(name, patternAt(0, 2 * MB));
    expect((await readAll(blobs, name)).length).to.equal(2 * MB);
    const { stream } = blobSubjects(name);
    const subjects = await subjectsOf(name);
    const chunk = subjects.find((subject) => subject.endsWith(".1")) ?? "";
    await world.bus.jetstream.streams.purge(stream, { filter: chunk });
    expect(await codeOf(readAll(blobs, name))).to.equal("not_found");
  });

  it("get() rejects before the last bytes if the content is not what was written", async () => {
    const name = newName();
    await blobs.put(name, patternAt(0, 2 * BLOB_CHUNK_BYTES));
    const [chunk = ""] = (await subjectsOf(name)).filter((subject) => subject.endsWith(".0"));
    await world.bus.jetstream.streams.purge(STREAMS.crawl, { filter: chunk });
    const payload = patternAt(1, BLOB_CHUNK_BYTES);
    await writeAtomically(world.bus, [{ subject: chunk, payload }]);
    let bytes = 0;
    const read = (async () => {
      for await (const piece of blobs.get(name)) bytes += piece.length;
    })();
    const error = await read.catch((failure) => failure);
    expect(error).to.be.instanceOf(Error).and.not.instanceOf(ActorError);
    expect(error.message).to.include("are not those that were written");
    expect(bytes).to.equal(BLOB_CHUNK_BYTES);
  });

  it("putAll() stores few and many blobs, large ones among them, and again", async () => {
    for (const number of [1, SINGLE_PUTS_MAX, SINGLE_PUTS_MAX + 1, 1_200]) {
      const list = Array.from({ length: number }, (_, index) => ({
        name: newName(),
        content: patternAt(index, index === 3 ? BLOB_CHUNK_BYTES + 5 : 2_000 + index),
      }));
      await blobs.putAll(list);
      await blobs.putAll(list);
      for (const { name, content } of list.filter((_, index) => index < 5 || index % 100 === 0)) {
        expect(content.equals(await readAll(blobs, name))).to.equal(true);
      }
      const [first] = list;
      if (!first) throw new Error("no blob");
      const other = list.map((one) => (one === first ? { ...one, content: patternAt(9, 9) } : one));
      expect(await codeOf(blobs.putAll(other))).to.equal("conflict");
    }
    await blobs.putAll([]);
  });

  it("put() and putAll() return the bytes by which the stream grows", async () => {
    const grown = async (store: () => Promise<readonly { storedBytes: number }[]>) => {
      const before = await streamBytes();
      const counted = (await store()).reduce((sum, { storedBytes }) => sum + storedBytes, 0);
      return { counted, grown: (await streamBytes()) - before };
    };
    const sizes = [0, 1, 900, 50_000, BLOB_CHUNK_BYTES + 1, 3 * BLOB_CHUNK_BYTES];
    for (const contentOf of [
      (bytes: number) => randomBytes(bytes),
      (bytes: number) => Buffer.alloc(bytes, "a page, "),
    ]) {
      for (const bytes of sizes) {
        const one = { name: newName(), content: contentOf(bytes) };
        const alone = await grown(async () => [await blobs.put(one.name, one.content)]);
        expect(alone.counted, `${bytes} bytes`).to.be.closeTo(alone.grown, alone.grown / 50);
        const [again] = await blobs.putAll([one]);
        expect(again?.storedBytes).to.be.at.least(alone.counted);
        for (const number of [2, SINGLE_PUTS_MAX + 1, 300]) {
          if (bytes * number > 20 * MB) continue;
          const list = Array.from({ length: number }, () => ({ ...one, name: newName() }));
          const many = await grown(() => blobs.putAll(list));
          const what = `${number} of ${bytes} bytes`;
          expect(many.counted, what).to.be.closeTo(many.grown, many.grown / 50);
        }
      }
    }
  });

  it("putAll() of many blobs is one write", async () => {
    const list = Array.from({ length: 100 }, () => ({ name: newName(), content: patternAt(0, 9) }));
    const before = await lastSequence();
    const other = { name: newName(), content: patternAt(0, 1) };
    await Promise.all([blobs.putAll(list), blobs.putAll([other])]);
    expect((await lastSequence()) - before).to.equal(101);
    const sequences = await Promise.all(list.map(({ name }) => sequenceOf(name)));
    expect(Math.max(...sequences) - Math.min(...sequences)).to.equal(99);
  });

  it("remove() removes one name, removeAll() all below it; both may be repeated", async () => {
    const names = [
      "crawl.job1",
      "crawl.job1.1",
      "crawl.job1.1.json",
      "crawl.job11.1",
      "crawl.job2.1",
    ];
    for (const name of names) await blobs.put(name, patternAt(0, BLOB_CHUNK_BYTES + 1));
    const there = async () => {
      const known = await Promise.all(names.map((name) => blobs.has(name)));
      return names.filter((_, index) => known[index]);
    };
    for (let repeat = 0; repeat < 2; repeat++) {
      await blobs.remove("crawl.job1.1");
      expect(await there()).to.deep.equal(names.filter((name) => name !== "crawl.job1.1"));
      expect(await chunksOf("crawl.job1.1")).to.equal(0);
    }
    for (let repeat = 0; repeat < 2; repeat++) {
      await blobs.removeAll("crawl.job1");
      expect(await there()).to.deep.equal(["crawl.job11.1", "crawl.job2.1"]);
    }
    // The blob's name is free again.
    await blobs.put("crawl.job1.1", patternAt(5, 5));
    expect((await readAll(blobs, "crawl.job1.1")).length).to.equal(5);
  });

  it("names are tokens of a known family, up to their limit", async () => {
    const longest = `crawl.${"a".repeat(BLOB_NAME_CHARS_MAX - 6)}`;
    await blobs.put(longest, patternAt(0, 1));
    for (const name of [
      `${longest}a`,
      "crawl",
      "crawl.",
      "crawl.a.",
      "crawl..a",
      "other.a",
      "crawl.*",
      "crawl.>",
      "crawl.a b",
      "crawl.=",
      "crawl.é",
      ".crawl",
      "",
      "constructor.a",
      "__proto__.a",
    ]) {
      const failure = await blobs.put(name, patternAt(0, 1)).catch((error) => error.message);
      expect(failure).to.include("Cannot name blob");
      expect(() => blobSubjects(name)).to.throw("Cannot name blob");
    }
    expect(() => blobSubjects("crawl")).to.throw();
  });

  it("a blob with a time to live is gone afterwards", async () => {
    const name = newName();
    await blobs.put(name, patternAt(0, BLOB_CHUNK_BYTES + 1), { ttlS: 4 });
    await blobs.put(`${name}.b`, patternAt(0, 1), { ttlS: 4 });
    expect(await blobs.has(name)).to.equal(true);
    await until(
      "it is gone",
      async () => !(await blobs.has(name)) && !(await blobs.has(`${name}.b`)),
    );
    const left = () => world.count(STREAMS.crawl, blobSubjects(name).beneath);
    await until("nothing is left", async () => (await left()) === 0);
  });

  it("a full store refuses more, and keeps what it has", async () => {
    const { streams } = world.bus.jetstream;
    const kept = newName();
    await blobs.put(kept, patternAt(0, MB));
    const { state, config } = await streams.info(STREAMS.crawl);
    await streams.update(STREAMS.crawl, { max_bytes: state.bytes + 100_000 });
    try {
      const name = newName();
      const content = patternAt(0, 2 * MB);
      expect(await codeOf(blobs.put(name, content))).to.equal("storage_full");
      const list = Array.from({ length: 20 }, () => ({
        name: newName(),
        content: patternAt(0, 50_000),
      }));
      expect(await codeOf(blobs.putAll(list))).to.equal("storage_full");
      expect(await chunksOf(name)).to.equal(0);
      expect((await readAll(blobs, kept)).length).to.equal(MB);
    } finally {
      await streams.update(STREAMS.crawl, { max_bytes: config.max_bytes });
    }
  });

  it("put() and get() stop when the signal aborts, with its reason", async () => {
    const [name, reason] = [newName(), new Error("enough")];
    const controller = new AbortController();
    const { signal } = controller;
    await blobs.put(name, patternAt(0, 4 * MB));
    const read = (async () => {
      for await (const _ of blobs.get(name, { signal })) controller.abort(reason);
    })();
    expect(await read.catch((error) => error)).to.equal(reason);
    const put = blobs.put(newName(), patternAt(0, 4 * MB), { signal });
    expect(await put.catch((error) => error)).to.equal(reason);
    for await (const _ of blobs.get(name)) break;
  });

  it("get() is served in turns: many reads of one owner do not delay a read of another", async () => {
    const [many, few] = [newName(), `crawl.other.${++count}`];
    for (const name of [many, few]) await blobs.put(name, patternAt(0, 10));
    const { chunks } = world.bus.readLimits;
    const { signal } = new AbortController();
    const holding = Array.from({ length: chunks.free }, () => chunks.take("holder", signal));
    const [first, ...others] = await Promise.all(holding);
    const ended: string[] = [];
    const read = async (name: string) => {
      await readAll(blobs, name);
      ended.push(name);
    };
    const reads = Array.from({ length: 50 }, () => read(many));
    await turn();
    const other = read(few);
    await turn();
    first?.();
    await other;
    expect(ended.length).to.be.below(10);
    for (const leave of others) leave();
    await Promise.all(reads);
  });

  const streamBytes = async () =>
    (await world.bus.jetstream.streams.info(STREAMS.crawl)).state.bytes;
  const subjectsOf = async (name: string) => {
    const { stream, all } = blobSubjects(name);
    const { state } = await world.bus.jetstream.streams.info(stream, { subjects_filter: all });
    return Object.keys(state.subjects ?? {});
  };
  const chunksOf = async (name: string) => (await subjectsOf(name)).length;
  const lastSequence = async () =>
    (await world.bus.jetstream.streams.info(STREAMS.crawl)).state.last_seq;
  const sequenceOf = async (name: string) =>
    (await world.bus.readLast(STREAMS.crawl, blobSubjects(name).head))?.seq ?? 0;

  it("put() says whether the blob existed; isWhole() and names() check every piece", async () => {
    for (const bytes of [10, 3 * BLOB_CHUNK_BYTES]) {
      const name = newName();
      const content = patternAt(0, bytes);
      expect(await blobs.isWhole(name)).to.equal(false);
      expect((await blobs.put(name, content)).wasThere).to.equal(false);
      expect((await blobs.put(name, content)).wasThere).to.equal(true);
      expect(await blobs.isWhole(name)).to.equal(true);
      expect((await blobs.names("crawl")).has(name)).to.equal(true);
    }
  });

  it("isWhole() is false, and names() lists the blob, if a piece is missing", async () => {
    const name = newName();
    await blobs.put(name, patternAt(0, 3 * BLOB_CHUNK_BYTES));
    const last = await blobs.lastSequence(name);
    await blobs.removeUpTo(name, (last ?? 0) - 2);
    expect(await blobs.isWhole(name)).to.equal(false);
    expect((await blobs.names("crawl")).has(name)).to.equal(true);
  });

  it("removeUpTo() removes what was seen, and nothing that was stored again since", async () => {
    const name = newName();
    await blobs.put(name, patternAt(0, 10));
    const seen = (await blobs.lastSequence(name)) ?? 0;
    await blobs.remove(name);
    await blobs.put(name, patternAt(0, 10));
    await blobs.removeUpTo(name, seen);
    expect(await blobs.isWhole(name)).to.equal(true);
    await blobs.removeUpTo(name, (await blobs.lastSequence(name)) ?? 0);
    expect(await blobs.has(name)).to.equal(false);
    expect(await blobs.lastSequence(name)).to.equal(undefined);
  });
});

const codeOf = async (promise: Promise<unknown>) => (await refusalOf(promise)).code;

async function readAll(blobs: BlobStore, name: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of blobs.get(name)) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function* inPieces(content: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < content.length; from += size) {
    yield content.subarray(from, from + size);
  }
}
