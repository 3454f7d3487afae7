import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { backupMarkSubject } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../testing/actor-world.ts";
import { backupContent, runBackupCommand } from "../testing/backup-commands.ts";
import { startNats, type TestNatsServer } from "../testing/nats-server.ts";
import { adminBackup } from "./admin-backup.ts";
import { adminRestore } from "./admin-restore.ts";
import { BackupFolder } from "./backup/backup-folder.ts";

/** A moment of a clock that is ahead of all real ones, and the moment of the next backup after it. */
const AHEAD = "2999-01-01T00:00:00.000Z";
const AFTER_AHEAD = "2999-01-01T00:00:00.001Z";

describe("the backups of a folder", function () {
  this.timeout(240_000);
  let world: World;
  let empty: TestNatsServer;
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-history-"));
    world = await startWorld();
    empty = await startNats();
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await empty.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  /** Publishes on a connection of its own, because the server may just have been restarted. */
  async function publish(subject: string, payload: string): Promise<void> {
    const bus = await Bus.connect({ url: world.url, name: "test" });
    await bus.jetstream.jetstream().publish(subject, payload);
    await bus.close();
  }

  /** Stops the server, copies its store from one folder to another, and starts the server. */
  async function copyStore(from: string, to: string): Promise<void> {
    await world.nats?.kill();
    await rm(to, { recursive: true, force: true });
    await cp(from, to, { recursive: true });
    await world.nats?.start();
  }

  async function backup(...more: string[]): Promise<string> {
    const { code, stdout, stderr } = await runBackupCommand(
      adminBackup,
      [folder, ...more],
      world.url,
    );
    expect(code, stderr).to.equal(0);
    return stdout;
  }

  /** Restores the newest backup and returns its content. */
  async function restored() {
    const { code, stderr } = await runBackupCommand(adminRestore, [folder], empty.url);
    expect(code, stderr).to.equal(0);
    const bus = await Bus.connect({ url: empty.url, name: "restored" });
    return await backupContent(bus).finally(() => bus.close());
  }

  it("count from the one that was made last, also where the clock was set back", async () => {
    await publish("$KV.state-0.counter.a", "old");
    await backup();
    // Gives the backup the moment of a machine whose clock is ahead.
    const [name = ""] = readdirSync(join(folder, "backups"));
    const backups = new BackupFolder(folder);
    const [moment = ""] = await backups.moments();
    await backups.write({ ...(await backups.read(moment)), moment: AHEAD });
    rmSync(join(folder, "backups", name));
    await publish("$KV.state-0.counter.a", "new");
    const report = await backup("--keep", "1");
    expect(report).to.match(/^The clock says \S+Z, which is not after the newest backup of /);
    expect(report).to.include(`Backup of ${AFTER_AHEAD} in `);
    expect(report).to.include(`Removed the backup of ${AHEAD}\n`);
    const payloads = (await restored()).map(({ payload }) => payload);
    expect(payloads).to.include("new").and.not.include("old");
  });

  it("begin anew where the bus was set back, and otherwise go on", async () => {
    const store = world.nats?.storeDir ?? "";
    const snapshot = join(folder, "snapshot");
    await publish("$KV.state-0.counter.a", "before");
    await backup();
    expect(await backup()).to.match(/^Backup of /);
    await copyStore(store, snapshot);
    for (const key of ["b", "c"]) await publish(`$KV.state-0.counter.${key}`, "lost");
    expect(await backup()).to.match(/^Backup of /);
    await copyStore(snapshot, store);
    // The same sequences, and one more.
    for (const key of ["d", "e", "f", "g"]) await publish(`$KV.state-0.counter.${key}`, "after");
    expect(await backup()).to.match(
      /^Read all messages again instead of continuing the backup of \S+Z: the bus does not have its mark: /,
    );
    expect(await backup()).to.match(/^Backup of /);
    const content = await restored();
    expect(content.map(({ subject, payload }) => [subject.slice(-1), payload])).to.deep.equal([
      ["a", "before"],
      ...["d", "e", "f", "g"].map((key) => [key, "after"]),
    ]);
  });

  it("go on from a backup of an older version, unless the bus goes on with another folder", async () => {
    await publish("$KV.state-0.counter.a", "value");
    await backup();
    const backups = new BackupFolder(folder);
    const [moment = ""] = await backups.moments();
    const { mark, ...older } = await backups.read(moment);
    await backups.write(older);
    const continued =
      /^Read all messages again instead of .*: an older version made it, and the bus continues another folder\n/;
    expect(await backup()).to.match(continued);
    rmSync(join(folder, "backups"), { recursive: true });
    const bus = await Bus.connect({ url: world.url, name: "test" });
    await bus.jetstream.streams.purge("KV_state-0", { filter: backupMarkSubject("*") });
    await bus.close();
    mkdirSync(join(folder, "backups"));
    await backups.write(older);
    expect(await backup()).to.match(/^Backup of /);
    expect(mark).to.have.keys("series", "id");
  });

  it("are verified file by file, and a damaged file heals where its content is stored again", async () => {
    const verify = () => runBackupCommand(adminBackup, [folder, "--verify"], "nats://127.0.0.1:1");
    const none = await verify();
    expect(none.stderr).to.match(/^Cannot read ".*": it is not a folder of backups$/);
    await publish("blob.crawl.a.=.head", "content");
    await publish("$KV.state-0.counter.a", "value");
    await backup();
    await backup();
    const parts = join(folder, "parts/CRAWL");
    const [part = ""] = readdirSync(parts).filter((name) => !name.startsWith("present"));
    const file = join(parts, part);
    const whole = readFileSync(file);
    expect(await verify()).to.deep.include({ code: 0, stderr: "" });
    const damage = () => {
      const flipped = Buffer.from(whole);
      flipped[whole.length - 1] = (whole.at(-1) ?? 0) ^ 1;
      writeFileSync(file, flipped);
    };
    damage();
    // A backup trusts the part, so this one needs the damaged file as well.
    await backup();
    const { code, stderr } = await verify();
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /^Cannot restore all backups in ".*": 1 of their \d+ files are missing or damaged\n/,
    );
    expect(stderr).to.include(
      `\n${file} is damaged; it does not have its SHA-256: needed by 3 of 3 backups\n`,
    );
    for (const name of readdirSync(join(folder, "backups")))
      expect(stderr).to.include(`its file is ${join(folder, "backups", name)}\n`);
    // Without its list, the stream begins anew, and its part has the content of the damaged file.
    const [list = ""] = readdirSync(parts).filter((name) => name.startsWith("present"));
    rmSync(join(parts, list));
    expect((await verify()).stderr).to.match(
      /present-1-\w+\.zst is missing \(.*\): needed by 3 of 3 /,
    );
    await backup();
    expect(await verify()).to.deep.include({ code: 0, stderr: "" });
    rmSync(join(folder, "backups"), { recursive: true });
    mkdirSync(join(folder, "backups"));
    expect((await verify()).stderr).to.match(/^Cannot verify ".*": it has no finished backup$/);
  });

  it("read a stream anew where its list is damaged, and are whole again without the harmed ones", async () => {
    await publish("blob.crawl.a.=.head", "first");
    await backup();
    await backup();
    const harmed = readdirSync(join(folder, "backups"));
    const parts = join(folder, "parts/CRAWL");
    const [list = ""] = readdirSync(parts).filter((name) => name.startsWith("present"));
    const file = join(parts, list);
    const bytes = readFileSync(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    writeFileSync(file, bytes);
    await publish("blob.crawl.b.=.head", "second");
    const note = `Read all messages of CRAWL again: ${file} is damaged; it does not have its SHA-256\n`;
    expect((await backup()).startsWith(note)).to.equal(true);
    expect(await backup()).to.match(/^Backup of /);
    expect((await restored()).map(({ payload }) => payload)).to.deep.equal(["first", "second"]);
    const verify = () => runBackupCommand(adminBackup, [folder, "--verify"], "nats://127.0.0.1:1");
    const { code, stderr } = await verify();
    expect(code).to.equal(1);
    expect(stderr.match(/(?<=: its file is .*)[^/]+\.json$/gm)).to.deep.equal(harmed);
    for (const name of harmed) rmSync(join(folder, "backups", name));
    expect(await verify()).to.deep.include({ code: 0, stderr: "" });
  });

  it("go on where the file of the newest one is damaged, and restore and --keep name it", async () => {
    await publish("$KV.state-0.counter.a", "first");
    await backup();
    await publish("$KV.state-0.counter.b", "second");
    await backup();
    const [whole = "", damaged = ""] = readdirSync(join(folder, "backups")).sort();
    const file = join(folder, "backups", damaged);
    const content = readFileSync(file, "utf8");
    writeFileSync(file, content.slice(0, 100));
    const reason = `Cannot use ${file}: it is damaged; expected JSON of a backup`;
    const moments = await new BackupFolder(folder).moments();
    const { code, stderr } = await runBackupCommand(adminRestore, [folder], empty.url);
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: `${reason}; bring this file back from a copy of the folder, or restore another backup with --from one of ${moments[0]}`,
    });
    const parameters = [folder, "--keep", "2"];
    const kept = await runBackupCommand(adminBackup, parameters, world.url);
    expect(kept.code).to.equal(1);
    expect(kept.stdout.startsWith(`Read all messages again: `)).to.equal(true);
    expect(kept.stdout).to.include(`${reason}. Bring this file back`).and.include("\nBackup of ");
    expect(kept.stderr).to.include("no old one was removed").and.include(reason);
    expect(readdirSync(join(folder, "backups")))
      .to.have.length(3)
      .and.include(whole);
    expect((await restored()).map(({ payload }) => payload)).to.deep.equal(["first", "second"]);
    // The file from a copy of the folder makes all backups whole again: none of its parts was removed.
    writeFileSync(file, content);
    const verified = await runBackupCommand(
      adminBackup,
      [folder, "--verify"],
      "nats://127.0.0.1:1",
    );
    expect(verified).to.deep.include({ code: 0, stderr: "" });
    rmSync(file);
    expect(await backup("--keep", "2")).to.include("Removed the backup of ");
  });
});
