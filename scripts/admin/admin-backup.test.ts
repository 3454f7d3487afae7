import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as nextTimer } from "node:timers/promises";
import { headers } from "@nats-io/transport-node";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { openData } from "../../deploy/open-data.ts";
import { RESTORE_MARK } from "../../deploy/restore-mark.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { isState, STREAMS } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../testing/actor-world.ts";
import { backupContent, runBackupCommand, streamsOn } from "../testing/backup-commands.ts";
import { trunkline } from "../testing/command-line.ts";
import { counter, counterActor } from "../testing/counter.ts";
import { startNats, type TestNatsServer } from "../testing/nats-server.ts";
import { until } from "../testing/until.ts";
import { adminBackup } from "./admin-backup.ts";
import { adminRestore } from "./admin-restore.ts";
import { BackupFolder } from "./backup/backup-folder.ts";
import { restoreBackup } from "./backup/restore-backup.ts";

/** Interval of lease writes in this test. A real host renews its lease far less often. */
const LEASES_EVERY_MS = 10;

describe("admin backup and restore", function () {
  this.timeout(120_000);
  let world: World;
  let empty: TestNatsServer;
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-backup-"));
    world = await startWorld({ definitions: [counterActor] });
    empty = await startNats();
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await empty.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  const backup = (...more: string[]) => runBackupCommand(adminBackup, [folder, ...more], world.url);
  const restore = (...more: string[]) =>
    runBackupCommand(adminRestore, [folder, ...more], empty.url);
  const files = () =>
    readdirSync(join(folder, "parts"), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith(".zst"))
      .sort();
  const backups = () => readdirSync(join(folder, "backups")).sort();
  const publish = (subject: string, payload: string, with_: Record<string, string> = {}) => {
    const options = headers();
    for (const [name, value] of Object.entries(with_)) options.set(name, value);
    return world.bus.jetstream.jetstream().publish(subject, payload, { headers: options });
  };

  it("restores the number of shards, and a start with another one is refused", async () => {
    const shards = {
      ...FIRST_LAYOUT,
      shards: 16,
      stateStreams: 2,
      mailStreams: 2,
      agentStreams: 4,
      taskStreams: 2,
      packStreams: 2,
    };
    const options = { version: "0.1.0", replicas: 1, tasks: [] };
    await openData(world.bus.jetstream, { ...options, wanted: shards });
    await backup();
    await restore();
    const bus = await Bus.connect({ url: empty.url, name: "restored" });
    try {
      expect(await openData(bus.jetstream, options)).to.deep.equal(shards);
      const wanted = { shards: 64 };
      const error = await openData(bus.jetstream, { ...options, wanted }).catch((cause) => cause);
      expect(String(error)).to.match(/TRUNKLINE_SHARDS: expected 16, .* found "64"/);
    } finally {
      await bus.close();
    }
  });

  it("restores every message with its sequence, time, headers and bytes, and the gaps between them", async () => {
    for (let n = 1; n <= 6; n++) {
      await publish(`blob.crawl.a.${n}.=.head`, `${n} ✓`, { "Trunkline-Blob": `{"n":${n}}` });
    }
    const { streams } = world.bus.jetstream;
    await streams.purge(STREAMS.crawl, { filter: "blob.crawl.a.2.=.head" });
    await streams.purge(STREAMS.crawl, { filter: "blob.crawl.a.6.=.head" });
    await publish("$KV.state-0.counter.a", "first");
    await publish("$KV.state-0.counter.a", "second");
    await publish("$KV.state-0.counter.b", "third");
    await publish("task.render.batch", "{}");
    const before = await backupContent(world.bus);
    const made = await trunkline(["admin", "backup", folder], world.url);
    expect(made.code, made.stderr).to.equal(0);
    expect(made.stdout).to.match(/^Backup of .* in .*\n7 messages of \d+ streams; /);
    expect(made.stdout).to.include("secrets.key");
    const restored = await trunkline(["admin", "restore", folder], empty.url);
    expect(restored.code, restored.stderr).to.equal(0);
    const bus = await Bus.connect({ url: empty.url, name: "restored" });
    try {
      expect(await backupContent(bus)).to.deep.equal(before);
      const { state } = await bus.jetstream.streams.info(STREAMS.crawl);
      expect(state).to.include({ messages: 4, first_seq: 1, last_seq: 6 });
      const next = await bus.jetstream.jetstream().publish("blob.crawl.b.=.head", "next");
      expect(next.seq).to.equal(7);
    } finally {
      await bus.close();
    }
  });

  it("a second backup adds only new messages, and leaves out what was removed or replaced", async () => {
    const { streams } = world.bus.jetstream;
    for (let n = 1; n <= 3; n++) await publish(`blob.crawl.a.${n}.=.head`, "x".repeat(1_000));
    await publish("$KV.state-0.counter.a", "old");
    await publish("$KV.state-0.counter.b", "stays");
    expect((await backup()).code).to.equal(0);
    const first = files();
    await streams.purge(STREAMS.crawl, { filter: "blob.crawl.a.1.=.head" });
    await publish("blob.crawl.a.4.=.head", "new");
    await publish("$KV.state-0.counter.a", "new");
    const before = await backupContent(world.bus);
    expect((await backup()).code).to.equal(0);
    const added = files().filter((file) => !first.includes(file));
    expect(added.filter((file) => !file.includes("present"))).to.have.length(2);
    expect(added.join(" ")).to.match(/CRAWL\/4-4-\w+\.zst .*KV_state-0\/3-4-\w+\.zst/);
    const third = files();
    expect((await backup()).code).to.equal(0);
    const later = files().filter((file) => !third.includes(file));
    // Only the mark of the second backup is new.
    expect(later.join(" ")).to.match(/^KV_state-0\/5-5-\w+\.zst KV_state-0\/present-5-\w+\.zst$/);
    expect((await restore()).code).to.equal(0);
    const bus = await Bus.connect({ url: empty.url, name: "restored" });
    expect(await backupContent(bus).finally(() => bus.close())).to.deep.equal(before);
  });

  it("--from restores an earlier backup, and --keep removes old ones with the files that only they need", async () => {
    await publish("$KV.state-0.counter.a", "old");
    expect((await backup()).code).to.equal(0);
    const [moment = ""] = /(?<=^Backup of )\S+/.exec((await backup()).stdout) ?? [];
    await publish("$KV.state-0.counter.a", "new");
    expect((await backup()).code).to.equal(0);
    const wrong = await restore("--from", "yesterday");
    expect(wrong).to.include({ code: 1 });
    expect(wrong.stderr).to.match(/expected --from one of .*, found "yesterday"$/);
    expect((await restore("--from", moment)).code).to.equal(0);
    const bus = await Bus.connect({ url: empty.url, name: "restored" });
    const [value] = await backupContent(bus).finally(() => bus.close());
    expect(value).to.include({ payload: "old" });
    const before = files();
    const kept = await backup("--keep", "1");
    expect(kept.stdout.match(/^Removed the backup of /gm)).to.have.length(3);
    expect(backups()).to.have.length(1);
    expect(before.filter((file) => !files().includes(file)).join(" ")).to.match(/1-1-\w+\.zst/);
  });

  it("a reminder that is due after the restore comes", async () => {
    const host = await world.host();
    // Late enough to be stored, and to be seen there, before it is due.
    await world.client.call(counter, "a", "remindAt", { at: Date.now() + 10_000 });
    await until("it is stored", async () => {
      return (await world.count("KV_state-0", "$KV.state-0.remind.>")) === 1;
    });
    expect((await backup()).code).to.equal(0);
    await host.stop();
    expect((await restore()).code).to.equal(0);
    await using restored = await startWorld({ definitions: [counterActor], url: empty.url });
    await restored.host({ name: "next" });
    await until("the reminder", async () => {
      return (await restored.client.call(counter, "a", "get", {})).count === 1;
    });
  });

  it("restore refuses a damaged, truncated or missing file, and changes nothing", async () => {
    await publish("$KV.state-0.counter.a", "value");
    expect((await backup()).code).to.equal(0);
    const part = join(folder, "parts", files().find((name) => !name.includes("present")) ?? "");
    const manifest = join(folder, "backups", backups()[0] ?? "");
    const whole = readFileSync(part);
    const flipped = Buffer.from(whole);
    flipped[whole.length - 1] = (flipped[whole.length - 1] ?? 0) ^ 1;
    const refused = async (what: RegExp) => {
      const { code, stderr } = await restore();
      expect(code).to.equal(1);
      expect(stderr).to.match(what);
      expect(await streamsOn(empty)).to.deep.equal([]);
    };
    writeFileSync(part, flipped);
    await refused(/^Cannot use the backup: .*\.zst is damaged; it does not have its SHA-256$/);
    truncateSync(part, whole.length - 1);
    await refused(/^Cannot use the backup: .*\.zst is truncated: \d+ of \d+ bytes$/);
    rmSync(part);
    await refused(/^Cannot use the backup: .*\.zst is missing \(.*\)$/);
    writeFileSync(part, whole);
    const text = readFileSync(manifest, "utf8");
    writeFileSync(manifest, text.replace('"messages":1', '"messages":2'));
    await refused(/^Cannot use .*\.json: it is damaged; its content does not have its SHA-256$/);
    writeFileSync(manifest, text.slice(0, 100));
    await refused(/^Cannot use .*\.json: it is damaged; expected JSON of a backup$/);
    rmSync(manifest);
    await refused(/^Cannot restore from ".*": it has no finished backup$/);
  });

  it("restore refuses a bus that is not empty, and begins anew where it was interrupted", async () => {
    await publish("$KV.state-0.counter.a", "value");
    expect((await backup()).code).to.equal(0);
    const bus = await Bus.connect({ url: empty.url, name: "test" });
    const { streams } = bus.jetstream;
    try {
      await streams.add({ name: "MAIL", subjects: ["mail.>"] });
      const { code, stderr } = await restore();
      expect({ code, stderr }).to.deep.equal({
        code: 1,
        stderr:
          "Cannot restore: the bus is not empty: it has MAIL; expected a bus without streams, such as that of a new data folder",
      });
      // Leaves the restore's mark on the bus, as a killed restore does.
      await streams.add({ name: RESTORE_MARK, subjects: ["restoring"] });
      expect((await restore()).code).to.equal(0);
      expect((await backupContent(bus)).map(({ payload }) => payload)).to.deep.equal(["value"]);
      expect(await streamsOn(empty)).not.to.include(RESTORE_MARK);
    } finally {
      await bus.close();
    }
  });

  it("a failed restore removes what it made, and keeps the mark while another stream is left", async () => {
    await publish("$KV.state-0.counter.a", "value");
    expect((await backup()).code).to.equal(0);
    const backups = new BackupFolder(folder);
    const newest = await backups.read((await backups.moments()).at(-1) ?? "");
    const bus = await Bus.connect({ url: empty.url, name: "test" });
    const failed = async (restored: (stream: string) => void) => {
      const parts = { bus, folder: backups, replicas: 1, restored };
      const error = await restoreBackup(parts, newest).catch((cause: unknown) => cause);
      expect(String(error)).to.equal("Error: stopped");
    };
    const stopAtState = (stream: string) => {
      if (isState(stream)) throw new Error("stopped");
    };
    try {
      await failed(stopAtState);
      expect(await streamsOn(empty)).to.deep.equal([]);
      await failed((stream) => {
        if (stream === STREAMS.mail)
          void bus.jetstream.streams.add({ name: "OTHER", subjects: ["other"] });
        stopAtState(stream);
      });
      expect((await streamsOn(empty)).sort()).to.deep.equal(["OTHER", RESTORE_MARK]);
    } finally {
      await bus.close();
    }
    expect((await restore()).code).to.equal(0);
    expect(await streamsOn(empty)).to.satisfy(
      (names: string[]) => !names.includes("OTHER") && !names.includes(RESTORE_MARK),
    );
  });

  it("holds every stream of the bus, also one that keeps some messages for each subject", async () => {
    const { streams } = world.bus.jetstream;
    const few = { name: "FEW", subjects: ["few.>"], max_msgs_per_subject: 3 };
    await streams.add({ ...few, allow_direct: true });
    for (let n = 0; n < 5; n++) await publish("few.each", `${n}`);
    const before = await backupContent(world.bus);
    expect(before).to.have.length(3);
    expect((await backup()).code).to.equal(0);
    expect((await restore()).code).to.equal(0);
    const bus = await Bus.connect({ url: empty.url, name: "restored" });
    expect(await backupContent(bus).finally(() => bus.close())).to.deep.equal(before);
  });

  it("leases that are renewed all the time do not disturb a backup", async () => {
    await publish("$KV.state-0.counter.a", "value");
    let isOver = false;
    const renewing = (async () => {
      while (!isOver) {
        await publish("$KV.state-0.lease.host", "{}", { "Nats-TTL": "2s" });
        await nextTimer(LEASES_EVERY_MS);
      }
    })();
    for (let round = 0; round < 3; round++) {
      const { code, stderr } = await backup();
      expect(code, stderr).to.equal(0);
    }
    isOver = true;
    await renewing;
    expect((await restore()).code).to.equal(0);
  });

  it("a backup reads a stream anew where a part of its last backup is missing", async () => {
    await publish("$KV.state-0.counter.a", "value");
    expect((await backup()).code).to.equal(0);
    const part = join(folder, "parts", files().find((name) => !name.includes("present")) ?? "");
    rmSync(part);
    expect((await backup()).code).to.equal(0);
    expect((await restore()).code).to.equal(0);
  });

  it("a backup in a folder of another bus begins anew", async () => {
    await publish("$KV.state-0.counter.a", "mine");
    expect((await backup()).code).to.equal(0);
    await using other = await startWorld();
    const jetstream = other.bus.jetstream.jetstream();
    for (const key of ["a", "b"]) await jetstream.publish(`$KV.state-0.counter.${key}`, "theirs");
    const { code } = await runBackupCommand(adminBackup, [folder], other.url);
    expect(code).to.equal(0);
    expect((await restore()).code).to.equal(0);
    const bus = await Bus.connect({ url: empty.url, name: "restored" });
    const content = await backupContent(bus).finally(() => bus.close());
    expect(content.map(({ payload }) => payload)).to.deep.equal(["theirs", "theirs"]);
  });

  it("refuses wrong parameters, a bus without data, and a folder that is none of backups", async () => {
    for (const [command, parameters, expected] of [
      [adminBackup, [], 'Cannot run "admin backup": expected a folder after it'],
      [adminBackup, [folder, "--keep", "0"], 'Cannot run "admin backup": expected nothing after'],
      [adminBackup, [folder, "--verify", "1"], 'Cannot run "admin backup": expected nothing after'],
      [adminBackup, [folder, "more"], 'Cannot run "admin backup": expected nothing after'],
      [adminRestore, [], 'Cannot run "admin restore": expected a folder of backups after it'],
      [adminRestore, [folder, "--from"], 'Cannot run "admin restore": expected nothing after'],
    ] as const) {
      const { code, stderr } = await runBackupCommand(command, parameters, world.url);
      expect({ code, is: stderr.startsWith(expected) }, stderr).to.deep.equal({
        code: 2,
        is: true,
      });
    }
    const nothing = await runBackupCommand(adminBackup, [folder], empty.url);
    expect(nothing.stderr).to.equal("Cannot back up the bus: it holds no data of Trunkline");
    const missing = await runBackupCommand(adminRestore, [join(folder, "no")], empty.url);
    expect(missing.stderr).to.match(/^Cannot read ".*\/no": there is no such folder$/);
    const other = await runBackupCommand(adminRestore, [tmpdir()], empty.url);
    expect(other.stderr).to.match(/^Cannot read ".*": it is not a folder of backups$/);
    writeFileSync(join(folder, "file"), "");
    const file = await runBackupCommand(adminBackup, [join(folder, "file/x")], world.url);
    expect(file.stderr).to.match(/^Cannot write to ".*": ENOTDIR/);
  });
});
