import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { startWorld, type World } from "../../testing/actor-world.ts";
import { BackupFolder } from "./backup-folder.ts";
import { takeBackup } from "./take-backup.ts";

/** More rows than a backup lists at its moment. */
const ROWS = 2_100;
/** Longer than the time between two reads of a state stream may be. */
const LEAP_MS = 9_000;

describe("takeBackup", function () {
  this.timeout(240_000);
  let world: World;
  let path: string;
  before(async () => {
    world = await startWorld();
    path = await mkdtemp(join(tmpdir(), "trunkline-take-"));
  });
  after(async () => {
    await rm(path, { recursive: true, force: true });
    await world?.[Symbol.asyncDispose]();
  });

  it("holds no row that was removed while the state was not read for longer than a marker exists", async () => {
    const { bus, subjects } = world;
    const jetstream = bus.jetstream.jetstream();
    const rowOf = (row: number) => subjects.row("counter.a", String(row));
    const rows = Array.from({ length: ROWS }, (_, row) => jetstream.publish(rowOf(row), "{}"));
    await Promise.all(rows);
    let leapMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + leapMs };
    let removed: Promise<unknown> = Promise.resolve();
    const atMoment = () => {
      if (leapMs > 0) return;
      leapMs = LEAP_MS;
      // This removal leaves no marker, like one whose marker has expired.
      removed = bus.jetstream.streams.purge(subjects.stream, { filter: rowOf(0) });
    };
    const folder = new BackupFolder(path);
    using _ = await folder.prepare();
    const { backup, holds } = await takeBackup(bus, folder, { atMoment, clock });
    await removed;
    const state = backup.streams.find(({ name }) => name === subjects.stream);
    expect(state).to.include({ messages: ROWS - 1, counted: ROWS - 1 });
    expect(holds).to.be.at.least(2);
  });
});
