/**
 * Creates the fixture of a release: `node_modules/.bin/node scripts/testing/make-data-fixture.ts deploy/fixtures/<version>`. Each release
 * creates its fixture once and never changes it.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { BackupFolder } from "../admin/backup/backup-folder.ts";
import { takeBackup } from "../admin/backup/take-backup.ts";
import { makeData, writeExpected } from "./data-fixture.ts";
import { startNats } from "./nats-server.ts";
import { RoleProcess } from "./role-process.ts";

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("Cannot make a fixture: expected its folder");
if (existsSync(path)) throw new Error(`Cannot make a fixture: ${path} exists, and stays as it is`);
const temporary = await mkdtemp(join(tmpdir(), "trunkline-fixture-"));
await using nats = await startNats();
await using instance = await RoleProcess.start("made", temporary, {
  TRUNKLINE_ROLES: "gateway,actors,browser",
  TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
  TRUNKLINE_NATS_URL: nats.url,
});
await instance.ready();
const expected = await makeData(instance.url, await instance.credentials());
const bus = await Bus.connect({ url: nats.url, name: "fixture" });
const folder = new BackupFolder(path);
{
  using _ = await folder.prepare();
  await takeBackup(bus, folder);
}
await bus.close();
await rm(join(path, "lock"), { force: true });
await writeExpected(path, expected);
await rm(temporary, { recursive: true, maxRetries: 10 });
