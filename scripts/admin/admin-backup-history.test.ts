import { readdirSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
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

  const publish = (subject: string, payload: string) =>
    world.bus.jetstream.jetstream().publish(subject, payload);

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
});
