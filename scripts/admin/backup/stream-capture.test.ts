import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { startWorld, type World } from "../../testing/actor-world.ts";
import { BackupFolder } from "./backup-folder.ts";
import { StreamCapture } from "./stream-capture.ts";

const STREAM = "BUSY";
const STORED = 5;

describe("StreamCapture", function () {
  this.timeout(120_000);
  let world: World;
  let folder: string;
  before(async () => {
    world = await startWorld();
    folder = await mkdtemp(join(tmpdir(), "trunkline-capture-"));
  });
  after(async () => {
    await rm(folder, { recursive: true, force: true });
    await world?.[Symbol.asyncDispose]();
  });

  it("readOn() ends although a message arrives for each that it reads, and reads those at the next call", async () => {
    const { bus } = world;
    const { streams } = bus.jetstream;
    await streams.add({ name: STREAM, subjects: ["busy.>"], allow_direct: false });
    const write = () => bus.jetstream.jetstream().publish("busy.one", "x");
    for (let count = 0; count < STORED; count++) await write();
    let reads = 0;
    const busy = new Proxy(bus, {
      get(target, name) {
        if (name !== "readNextOfLeader") return Reflect.get(target, name, target);
        return async (...parameters: Parameters<typeof bus.readNextOfLeader>) => {
          reads += 1;
          if (reads > 10 * STORED) throw new Error("it reads on and on");
          const message = await bus.readNextOfLeader(...parameters);
          await write();
          return message;
        };
      },
    });
    const info = await streams.info(STREAM);
    const capture = await StreamCapture.begin(busy, new BackupFolder(folder), info);
    expect(await capture.readOn()).to.equal(STORED);
    expect(await capture.readOn()).to.equal(STORED);
  });
});
