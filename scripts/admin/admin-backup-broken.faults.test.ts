import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { openData } from "../../deploy/open-data.ts";
import { isRestoring } from "../../deploy/restore-mark.ts";
import { STREAMS } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../testing/actor-world.ts";
import { trunkline } from "../testing/command-line.ts";
import { startCluster, startNats, type TestNatsServer } from "../testing/nats-server.ts";
import { until } from "../testing/until.ts";
import { REPOSITORY } from "../tools.ts";

/** Number of blobs: enough data for several parts of 16 MiB. */
const BLOBS = 160;
const BLOB_BYTES = 512 * 1024;

describe("broken backups", function () {
  this.timeout(240_000);
  let world: World;
  let empty: TestNatsServer;
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-broken-"));
    world = await startWorld();
    empty = await startNats();
    const jetstream = world.bus.jetstream.jetstream();
    await jetstream.publish("$KV.state-0.counter.a", "value");
    for (let n = 0; n < BLOBS; n++) {
      await jetstream.publish(`blob.crawl.a.${n}.=.head`, randomBytes(BLOB_BYTES));
    }
  });
  after(async () => {
    await world?.[Symbol.asyncDispose]();
    await empty?.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  /**
   * Runs a command and kills its process as soon as `isSo` returns true. Returns false if the command had ended before,
   * because this process stood still.
   */
  async function killWhen(parameters: string[], url: string, isSo: () => Promise<boolean>) {
    const main = join(REPOSITORY, "scripts/trunkline.ts");
    const running = spawn(process.execPath, [main, ...parameters], {
      env: { ...process.env, TRUNKLINE_NATS_URL: url },
      stdio: "ignore",
    });
    const ended = once(running, "exit");
    await until("the moment to kill it", isSo);
    running.kill("SIGKILL");
    const [code, signal] = await ended;
    expect([code, signal]).to.be.deep.oneOf([
      [null, "SIGKILL"],
      [0, null],
    ]);
    return signal === "SIGKILL";
  }

  it("a killed backup leaves none, and the next one is whole", async () => {
    const path = join(folder, "killed");
    const parts = join(path, "parts", STREAMS.crawl);
    await until("it was killed", async () => {
      await rm(path, { recursive: true, force: true });
      return killWhen(["admin", "backup", path], world.url, async () => existsSync(parts));
    });
    expect(readdirSync(join(path, "backups"))).to.deep.equal([]);
    const refused = await trunkline(["admin", "restore", path], empty.url);
    expect(refused.stderr).to.match(/^Cannot restore from ".*": it has no finished backup\n$/);
    expect((await trunkline(["admin", "backup", path], world.url)).code).to.equal(0);
    const left = readdirSync(path, { recursive: true }).map(String);
    expect(left.filter((name) => name.endsWith(".unfinished"))).to.deep.equal([]);
  });

  it("a backup names a stream without a leader instead of leaving it out", async () => {
    const cluster = await startCluster(3);
    const url = cluster.urls.join(",");
    try {
      const bus = await Bus.connect({ url, name: "test" });
      const { streams } = bus.jetstream;
      const subjects = ["$KV.state-0.>"];
      await streams.add({ name: "KV_state-0", subjects, num_replicas: 3, allow_direct: true });
      await streams.add({ name: "DEAD", subjects: ["dead.>"] });
      const { cluster: placed } = await streams.info("DEAD");
      const path = join(folder, "leaderless");
      const whole = await trunkline(["admin", "backup", path], url);
      expect(whole.code, whole.stderr).to.equal(0);
      await bus.close();
      // The names of the servers are test-0 to test-2, so the last character is the server's index.
      const server = cluster.servers[Number(placed?.leader?.at(-1))];
      await server?.kill();
      await until(
        "the bus answers without it",
        async () => {
          const { stderr } = await trunkline(["admin", "backup", path], url);
          return stderr === "Cannot back up DEAD: it has no leader\n";
        },
        60_000,
      );
      expect(readdirSync(join(path, "backups"))).to.have.length(1);
    } finally {
      await cluster.stop();
    }
  });

  it("two backups into one folder at the same time are refused", async () => {
    const path = join(folder, "busy");
    const first = trunkline(["admin", "backup", path], world.url);
    await until("the first has begun", () => existsSync(join(path, "parts", STREAMS.crawl)));
    const second = await trunkline(["admin", "backup", path], world.url);
    expect(second).to.deep.equal({
      ...{ code: 1, stdout: "" },
      stderr: `Cannot use "${path}": another command writes to it\n`,
    });
    expect((await first).code).to.equal(0);
  });

  it("a full disk leaves the earlier backup, and the next one is whole when there is room", async function () {
    const path = join(folder, "small");
    mkdirSync(path);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", path], { stdio: "ignore" });
    } catch {
      this.skip(); // Only root may mount.
    }
    try {
      const { code, stderr } = await trunkline(["admin", "backup", path], world.url);
      expect(code).to.equal(1);
      expect(stderr).to.match(
        /^Cannot write to ".*": ENOSPC.*; the disk is full, and nothing counts of this backup\n$/,
      );
      expect(readdirSync(join(path, "backups"))).to.deep.equal([]);
      execFileSync("mount", ["-o", "remount,size=200m", path]);
      expect((await trunkline(["admin", "backup", path], world.url)).code).to.equal(0);
    } finally {
      execFileSync("umount", [path]);
    }
  });

  it("no process starts on a part of the data, and a restore that was killed begins anew", async () => {
    const path = join(folder, "killed");
    const bus = await Bus.connect({ url: empty.url, name: "test" });
    const { jetstream } = bus;
    const bytes = async () =>
      jetstream.streams.info(STREAMS.crawl).then(
        ({ state }) => state.bytes,
        () => 0, // It is not there yet.
      );
    try {
      await until("it was killed", async () => {
        for await (const name of jetstream.streams.names()) await jetstream.streams.delete(name);
        return killWhen(["admin", "restore", path], empty.url, async () => (await bytes()) > 0);
      });
      expect(await isRestoring(jetstream)).to.equal(true);
      const options = { version: "0", replicas: 1, tasks: [] };
      const error = await openData(jetstream, options).catch((cause: unknown) => cause);
      expect(String(error)).to.include("run the same trunkline admin restore again");
      const again = await trunkline(["admin", "restore", path], empty.url);
      expect(again.code, again.stderr).to.equal(0);
      await openData(jetstream, options);
      const { state } = await jetstream.streams.info(STREAMS.crawl);
      expect(state.messages).to.equal(BLOBS);
    } finally {
      await bus.close();
    }
  });

  it("a restore that fails leaves the bus empty", async () => {
    const path = join(folder, "killed");
    // This server accepts only messages up to 400 KB, and the backup contains larger ones.
    await using small = await startNats({ config: "max_payload: 400KB" });
    const { code, stderr } = await trunkline(["admin", "restore", path], small.url);
    expect(code).to.equal(1);
    expect(stderr).to.match(/exceeds maximum payload size/);
    const bus = await Bus.connect({ url: small.url, name: "test" });
    const names: string[] = [];
    for await (const name of bus.jetstream.streams.names()) names.push(name);
    await bus.close();
    expect(names).to.deep.equal([]);
  });
});
