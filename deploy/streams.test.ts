import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { DiscardPolicy, StoreCompression } from "@nats-io/jetstream";
import { expect } from "chai";
import { ACTORS, TASKS } from "../actors/main.ts";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { FIRST_LAYOUT } from "../schemas/data-layout.ts";
import { CACHE_BYTES_MAX } from "../schemas/store-limits.ts";
import { FIXED_BYTES, storeSizes } from "../schemas/store-sizes.ts";
import { STREAMS, stateBucket, stateSubjects, taskConsumer } from "../schemas/subjects.ts";
import { DISK_BYTES_MIN } from "../scripts/disk-room.ts";
import { startNats } from "../scripts/testing/nats-server.ts";
import { allStreams, BLOB_STORE_BYTES_MIN, isSized } from "./stream-declarations.ts";
import { declareStreams } from "./streams.ts";

const SCHEMA = join(import.meta.dirname, "storage-schema.md");
const subjects = stateSubjects(stateBucket(0));
const declared = { layout: FIRST_LAYOUT, tasks: TASKS };

describe("streams", function () {
  this.timeout(240_000);

  it("declareStreams() makes every stream and lane, and may run repeatedly and concurrently", async () => {
    await using server = await startNats();
    const bus = await Bus.connect({ url: server.url, name: "test" });
    const declare = () => declareStreams(bus.jetstream, { ...declared, replicas: 1 });
    await Promise.all([declare(), declare(), declare()]);
    await declare();
    const names = await streamNames(bus);
    expect(names).to.have.members([
      ...Object.values(STREAMS),
      ...[subjects.stream, subjects.journalStream],
    ]);
    for (const { kind, lanes } of TASKS) {
      for (const lane of lanes) {
        await bus.jetstream.consumers.info(STREAMS.tasks, taskConsumer(kind, lane));
      }
    }
    // When the cache is full, the stream drops its oldest values. See the test of TtlStore.
    const cache = await bus.jetstream.streams.info(STREAMS.cache);
    expect(cache.config).to.include({ max_bytes: CACHE_BYTES_MAX, discard: "old" });
    await bus.close();
  });

  it("the smallest volume holds every stream at its least", () => {
    const least = allStreams({ replicas: 1, layout: FIRST_LAYOUT, tasks: TASKS })
      .filter(isSized)
      .reduce((sum, { max_bytes: bytes }) => sum + Math.min(bytes, BLOB_STORE_BYTES_MIN), 0);
    // nats-server uses three quarters of the volume.
    expect(least).to.be.at.most((DISK_BYTES_MIN * 3) / 4);
  });

  it("an idle instance uses at most a few megabytes of disk, however long it idles", async () => {
    await using server = await startNats();
    const bus = await Bus.connect({ url: server.url, name: "test" });
    await declareStreams(bus.jetstream, { ...declared, replicas: 1 });
    const js = bus.jetstream.jetstream();
    // Leases are renewed twice a second, which is 25 kB a minute. The loop writes 20 MB, as much as leases do in half
    // a day, with some values between them.
    let [largest, size] = [0, 0];
    for (let i = 1; i <= 320; i++) {
      await js.publish(subjects.lease("host"), new Uint8Array(64_000));
      if (i % 20 === 0) await js.publish(subjects.value(`account.${i}`), new Uint8Array(300));
      size = await bytesIn(join(server.storeDir, "jetstream/TRUNKLINE/streams", subjects.stream));
      largest = Math.max(largest, size);
    }
    expect(largest).to.be.below(10 * 1024 ** 2);
    await bus.close();
  });

  it("declareStreams() turns off compression of streams that a cluster may replicate", async () => {
    await using server = await startNats();
    const bus = await Bus.connect({ url: server.url, name: "test" });
    const compression = StoreCompression.S2;
    await bus.jetstream.streams.add({
      ...{ name: STREAMS.crawl, subjects: ["blob.crawl.>"], compression },
      ...{
        allow_atomic: true,
        allow_direct: true,
        allow_msg_ttl: true,
        discard: DiscardPolicy.New,
      },
    });
    await declareStreams(bus.jetstream, { ...declared, replicas: 1 });
    const infos = await Array.fromAsync(bus.jetstream.streams.list());
    const compressed = infos.filter(({ config }) => config.compression === compression);
    expect(compressed.map(({ config }) => config.name)).to.have.members([
      STREAMS.cache,
      STREAMS.traces,
    ]);
    await bus.close();
  });

  it("declareStreams() lets records of a stream of agents from an earlier version expire, also after that version starts", async () => {
    await using server = await startNats();
    const bus = await Bus.connect({ url: server.url, name: "test" });
    const { streams } = bus.jetstream;
    const expires = async () => (await streams.info(STREAMS.agents)).config.allow_msg_ttl ?? false;
    const earlier = {
      ...{ name: STREAMS.agents, subjects: ["agentlog.>"], discard: DiscardPolicy.New },
      ...{ allow_atomic: true, allow_direct: true, allow_rollup_hdrs: true },
    };
    await streams.add(earlier);
    expect(await expires()).to.equal(false);
    await declareStreams(bus.jetstream, { ...declared, replicas: 1 });
    expect(await expires()).to.equal(true);
    await streams.update(STREAMS.agents, earlier);
    expect(await expires()).to.equal(true);
    await bus.close();
  });

  it("declareStreams() reports at once that one server cannot hold replicas", async () => {
    await using server = await startNats();
    const bus = await Bus.connect({ url: server.url, name: "test" });
    const failure = await declareStreams(bus.jetstream, { ...declared, replicas: 3 }).catch(
      (error) => error,
    );
    expect(failure.message).to.include("replicas > 1 not supported in non-clustered mode");
    await bus.close();
  });

  it("declareStreams() fits blobs to a small disk, and may run again there", async () => {
    const config =
      "jetstream { store_dir: $TRUNKLINE_NATS_STORE, sync_interval: always, max_mem: 256MB, max_file: 12GB }";
    await using small = await startNats({ config });
    const bus = await Bus.connect({ url: small.url, name: "test" });
    try {
      const bytesMax = async () => {
        await declareStreams(bus.jetstream, { ...declared, replicas: 1 });
        // Even the largest stream, which is grown last, gets more than its minimum.
        const packs = (await bus.jetstream.streams.info(STREAMS.packs)).config.max_bytes;
        expect(packs).to.be.above(BLOB_STORE_BYTES_MIN);
        return (await bus.jetstream.streams.info(STREAMS.crawl)).config.max_bytes;
      };
      const given = await bytesMax();
      expect(given).to.be.within(BLOB_STORE_BYTES_MIN, storeSizes().crawl);
      expect(await bytesMax()).to.be.at.least(given);
    } finally {
      await bus.close();
    }
  });

  it("declareStreams() gives stores their sizes, grows them with the disk, and shrinks none", async () => {
    const config =
      "jetstream { store_dir: $TRUNKLINE_NATS_STORE, sync_interval: always, max_mem: 256MB, max_file: 900GB }";
    await using large = await startNats({ config });
    const bus = await Bus.connect({ url: large.url, name: "test" });
    try {
      const layout = { ...FIRST_LAYOUT, agentStreams: 2, packStreams: 4 };
      const sized = { replicas: 1, layout, tasks: TASKS };
      const bytesOf = async (stream: string) =>
        (await bus.jetstream.streams.info(stream)).config.max_bytes;
      for (const [gib, expected] of [
        [100, 100],
        [400, 400],
        [200, 400],
      ] as const) {
        await declareStreams(bus.jetstream, { ...sized, sizes: storeSizes(gib * 1024 ** 3) });
        const sizes = storeSizes(expected * 1024 ** 3);
        expect(await bytesOf(STREAMS.crawl)).to.equal(sizes.crawl);
        for (const stream of ["AGENTS", "AGENTS-1"])
          expect(await bytesOf(stream)).to.equal(Math.floor(sizes.agents / 2));
        for (const stream of ["PACKS", "PACKS-1", "PACKS-2", "PACKS-3"])
          expect(await bytesOf(stream)).to.equal(Math.floor(sizes.packs / 4));
        const { config: jobs } = await bus.jetstream.streams.info(STREAMS.renderJobs);
        expect(jobs.max_bytes).to.equal(sizes.renderJobs);
      }
    } finally {
      await bus.close();
    }
  });

  it("declareStreams() grows a stream as far as the bus has room", async () => {
    const sizes = storeSizes(10 * 1024 ** 3);
    const wanted = { ...sizes, packs: Math.floor(1.9 * sizes.packs) };
    const sum = Object.values(sizes).reduce((all, bytes) => all + bytes, 0);
    // Half of the growth has room.
    const room = FIXED_BYTES + sum + Math.floor(0.45 * sizes.packs);
    const config = `jetstream { store_dir: $TRUNKLINE_NATS_STORE, max_mem: 256MB, max_file: ${room} }`;
    await using server = await startNats({ config });
    const bus = await Bus.connect({ url: server.url, name: "test" });
    try {
      await declareStreams(bus.jetstream, { ...declared, replicas: 1, sizes });
      const packs = async () => (await bus.jetstream.streams.info(STREAMS.packs)).config.max_bytes;
      expect(await packs()).to.equal(sizes.packs);
      await declareStreams(bus.jetstream, { ...declared, replicas: 1, sizes: wanted });
      expect(await packs()).to.be.within(1.3 * sizes.packs, 1.5 * sizes.packs);
    } finally {
      await bus.close();
    }
  });

  it("storage-schema.md names every stream that is declared, and every kind with its state", async () => {
    await using server = await startNats();
    const bus = await Bus.connect({ url: server.url, name: "test" });
    await declareStreams(bus.jetstream, { ...declared, replicas: 1 });
    const text = await readFile(SCHEMA, "utf8");
    for (const name of await streamNames(bus)) {
      expect(text).to.include(`\`${name.replace(/-\d+$/, "-<n>")}`);
    }
    for (const { contract, state, durable } of ACTORS) {
      const row = text.split("\n").find((line) => line.startsWith(`| \`${contract.kind}\` |`));
      expect(row, contract.kind).to.be.a("string");
      for (const field of fieldsOf(state)) expect(row, contract.kind).to.match(word(field));
      if (!durable) expect(row).to.include("nothing:");
    }
    for (const { kind, lanes } of TASKS) {
      for (const lane of lanes) expect(text).to.include(`\`${taskConsumer(kind, lane)}\``);
    }
    await bus.close();
  });

  it("storage-schema.md names every key of a state bucket", async () => {
    const text = await readFile(SCHEMA, "utf8");
    const shard = 7;
    const address = "<kind>.<key>";
    const keys = [
      subjects.value(address),
      subjects.rows(address).replace(/>$/, "<row>"),
      subjects.epoch(shard),
      subjects.outbox(shard),
      subjects.lease("<host>"),
      subjects.remind(shard, address, "<message>"),
      subjects.firedFor(subjects.remind(shard, address, "<message>")) ?? "",
    ];
    for (const subject of keys) {
      const key = subject.replace("$KV.state-0.", "").replace(`.${shard}`, ".<p>");
      expect(text).to.include(`| \`${key}\` |`);
    }
  });
});

async function streamNames(bus: Bus): Promise<string[]> {
  const names: string[] = [];
  for await (const name of bus.jetstream.streams.names()) names.push(name);
  return names;
}

/** Returns the bytes of all files below a folder. Skips files that are deleted during the reading. */
async function bytesIn(folder: string): Promise<number> {
  const paths = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = paths.map((path) =>
    stat(join(folder, path)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}

/** Returns the names of the fields of a kind's state, for all alternatives if the schema is a union. */
function fieldsOf(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  if ("shape" in schema && typeof schema.shape === "object" && schema.shape !== null) {
    return Object.keys(schema.shape);
  }
  if ("options" in schema && Array.isArray(schema.options)) return schema.options.flatMap(fieldsOf);
  return [];
}

const word = (name: string) => new RegExp(`\\b${name}\\b`);
