/**
 * Benchmarks backup and restore of packs and state, compared with `nats stream backup` and `nats stream restore` of
 * the same streams.
 */

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { TASKS } from "../../../actors/main.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { declareStreams } from "../../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { STATE_STREAMS } from "../../../schemas/limits.ts";
import { blobSubjects, STREAMS, stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { adminRestore } from "../../admin/admin-restore.ts";
import { BackupFolder } from "../../admin/backup/backup-folder.ts";
import { takeBackup } from "../../admin/backup/take-backup.ts";
import { natsCli } from "../../testing/nats-cli.ts";
import { startNats, type TestNatsServer } from "../../testing/nats-server.ts";
import type { Benchmark, Figure } from "../benchmark.ts";

const run = promisify(execFile);
const MB = 1_000_000;
/**
 * Number of messages in the pack stream. Each contains one chunk of a pack. Their content hardly compresses, as in
 * real packs.
 */
const PACK_MESSAGES = 1_000;
const PACK_CHUNK_BYTES = 128 * 1024;
/** Number of messages in the state stream. Their values are JSON, as those of actors. */
const STATE_MESSAGES = 20_000;
const IN_FLIGHT = 100;
const STATE = stateSubjects(stateBucket(0));
const COMPARED = [STREAMS.packs, STATE.stream];

export const backup: Benchmark = {
  name: "backup",
  run: async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-backup-"));
    try {
      await using nats = await startNats();
      const bus = await Bus.connect({ url: nats.url, name: "bench" });
      try {
        return await measure(bus, nats, folder);
      } finally {
        await bus.close();
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  },
};

async function measure(bus: Bus, nats: TestNatsServer, folder: string): Promise<Figure[]> {
  await declareStreams(bus.jetstream, {
    replicas: 1,
    layout: { ...FIRST_LAYOUT, stateStreams: STATE_STREAMS },
    tasks: TASKS,
  });
  const bytes = await fill(bus);
  const ours = new BackupFolder(join(folder, "ours"));
  const firstMs = await timed(() => backUp(bus, ours));
  await publish(bus, 10, (index) => [STATE.value(`bench.again-${index}`), "{}"]);
  const secondMs = await timed(() => backUp(bus, ours));
  const cli = await natsCli({ isOptimized: true });
  const theirs = (stream: string) => join(folder, "theirs", stream);
  const saveMs =
    cli === undefined ? undefined : await timed(() => each("backup", nats.url, theirs));
  const restoreMs = await timed(async () => {
    await using other = await startNats();
    await adminRestore([ours.path], { TRUNKLINE_NATS_URL: other.url }, () => {});
  });
  const loadMs =
    cli === undefined
      ? undefined
      : await timed(async () => {
          await using other = await startNats();
          await each("restore", other.url, theirs);
        });
  const rate = (ms: number | undefined) => ms && bytes / MB / (ms / 1_000);
  const figure = (name: string, unit: string, own: number, reference?: number): Figure => ({
    ...{ name, unit, ours: own },
    ...(reference && { reference }),
  });
  const size = sizeOf(ours.path) / bytes;
  const what = `of ${Math.round(bytes / MB)} MB`;
  return [
    figure(`first backup ${what}`, "MB/s", rate(firstMs) ?? 0, rate(saveMs)),
    figure(
      "bytes of the backup, as a share of the data",
      "",
      size,
      saveMs && sizeOf(join(folder, "theirs")) / bytes,
    ),
    figure("second backup, with 10 new messages", "ms", secondMs),
    figure(`restore ${what}, each message compared`, "MB/s", rate(restoreMs) ?? 0, rate(loadMs)),
  ];

  async function each(verb: "backup" | "restore", url: string, path: (stream: string) => string) {
    for (const stream of COMPARED) {
      const parameters = verb === "backup" ? [stream, path(stream)] : [path(stream)];
      await run(cli ?? "", ["-s", url, "stream", verb, "--no-progress", ...parameters]);
    }
  }
}

/** Fills the streams. Returns the number of stored bytes. */
async function fill(bus: Bus): Promise<number> {
  await publish(bus, PACK_MESSAGES, (index) => [
    blobSubjects("git.bench").chunk("writer", index),
    randomBytes(PACK_CHUNK_BYTES),
  ]);
  await publish(bus, STATE_MESSAGES, (index) => {
    const state = { name: `actor ${index}`, token: randomBytes(24).toString("hex"), at: index };
    return [STATE.value(`bench.actor-${index}`), JSON.stringify({ state, mail: index })];
  });
  let bytes = 0;
  for await (const { state } of bus.jetstream.streams.list()) bytes += state.bytes;
  return bytes;
}

/** Publishes messages, a limited number in parallel. Each waits until the server has stored it. */
async function publish(
  bus: Bus,
  count: number,
  message: (index: number) => [subject: string, data: string | Uint8Array],
): Promise<void> {
  const client = bus.jetstream.jetstream();
  let next = 0;
  const publisher = async () => {
    while (next < count) await client.publish(...message(next++));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, publisher));
}

async function backUp(bus: Bus, folder: BackupFolder): Promise<void> {
  using _ = await folder.prepare();
  await takeBackup(bus, folder);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files
    .map((path) => statSync(join(folder, path)))
    .filter((found) => found.isFile())
    .reduce((sum, { size }) => sum + size, 0);
}
