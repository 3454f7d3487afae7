import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { expect } from "chai";
import { APP_WAL_FILES_MAX } from "../../../schemas/apps/limits.ts";
import { APP_AGENT_FILES } from "../lib/app-process/open-files-limit.ts";
import { emptyRecord, PageLog, restoreImage } from "./page-log.ts";

/** Statements that other methods of replication lose or refuse. In each list, every statement is one commit. */
const CASES: Record<string, string[]> = {
  "a table without primary key": [
    "CREATE TABLE t (a, b)",
    "INSERT INTO t VALUES (1, 2), (1, 2)",
    "DELETE FROM t WHERE rowid = 1",
  ],
  "NULL in a text primary key": [
    "CREATE TABLE t (id TEXT PRIMARY KEY, v)",
    "INSERT INTO t (v) VALUES (1)",
    "INSERT INTO t (v) VALUES (2)",
    "UPDATE t SET v = 3 WHERE id IS NULL",
  ],
  "AUTOINCREMENT with inserts and deletes": [
    "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v)",
    "INSERT INTO t (v) VALUES (1), (2), (3)",
    "DELETE FROM t",
    "INSERT INTO t (v) VALUES (4)",
  ],
  "a trigger that writes to another table": [
    "CREATE TABLE t (v); CREATE TABLE log (v); CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.v); END",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t VALUES (2)",
  ],
  "a trigger that counts": [
    "CREATE TABLE t (v); CREATE TABLE n (n); INSERT INTO n VALUES (0); CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE n SET n = n + 1; END",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t VALUES (2), (3)",
  ],
  "full text search": [
    "CREATE VIRTUAL TABLE t USING fts5 (body)",
    "INSERT INTO t VALUES ('one two'), ('two three')",
    "DELETE FROM t WHERE t MATCH 'one'",
    "INSERT INTO t (t) VALUES ('optimize')",
  ],
  "PRAGMA user_version": [
    "PRAGMA user_version = 7",
    "CREATE TABLE t (v)",
    "PRAGMA user_version = 8",
  ],
  "CREATE TABLE between writes": [
    "CREATE TABLE a (v)",
    "INSERT INTO a VALUES (1)",
    "CREATE TABLE b AS SELECT v FROM a",
    "INSERT INTO b VALUES (2)",
  ],
  "ALTER TABLE between writes": [
    "CREATE TABLE t (v)",
    "INSERT INTO t VALUES (1)",
    "ALTER TABLE t ADD COLUMN w DEFAULT 5",
    "INSERT INTO t VALUES (2, 3)",
    "ALTER TABLE t DROP COLUMN v",
    "ALTER TABLE t RENAME TO u",
  ],
  "a cascade over a foreign key": [
    "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p ON DELETE CASCADE)",
    "INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (1), (1), (2)",
    "DELETE FROM p WHERE id = 1",
  ],
  "WITHOUT ROWID": [
    "CREATE TABLE t (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID",
    "INSERT INTO t VALUES (1, 2), (3, 4)",
    "UPDATE t SET b = 9 WHERE a = 1",
  ],
  "UPSERT and REPLACE": [
    "CREATE TABLE t (k PRIMARY KEY, n)",
    "INSERT INTO t VALUES ('a', 1)",
    "INSERT INTO t VALUES ('a', 1) ON CONFLICT DO UPDATE SET n = n + 1",
    "REPLACE INTO t VALUES ('a', 9)",
  ],
  "generated columns and indexes on expressions": [
    "CREATE TABLE t (j, n AS (json_extract(j, '$.n')) STORED); CREATE INDEX i ON t (lower(j))",
    "INSERT INTO t VALUES ('{\"n\":1}')",
    "UPDATE t SET j = '{\"n\":2}'",
    "REINDEX",
  ],
  "large values": [
    "CREATE TABLE t (v)",
    "INSERT INTO t VALUES (zeroblob(300000)), (hex(randomblob(50000)))",
    "UPDATE t SET v = substr(v, 1, 10)",
  ],
  "random values and the time": [
    "CREATE TABLE t (a, b, c)",
    "INSERT INTO t VALUES (random(), datetime('now'), randomblob(100))",
    "UPDATE t SET a = random()",
  ],
  "a transaction that is rolled back": [
    "CREATE TABLE t (v)",
    "BEGIN; INSERT INTO t VALUES (1); ROLLBACK",
    "BEGIN; INSERT INTO t VALUES (2); SAVEPOINT s; INSERT INTO t VALUES (3); ROLLBACK TO s; COMMIT",
  ],
  VACUUM: [
    "CREATE TABLE t (v)",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT randomblob(400) FROM n",
    "DELETE FROM t WHERE rowid % 3 > 0",
    "VACUUM",
    "INSERT INTO t VALUES (1)",
  ],
  "DROP TABLE, and one that takes its pages": [
    "CREATE TABLE t (v); INSERT INTO t VALUES (randomblob(90000))",
    "DROP TABLE t",
    "CREATE TABLE u (v); INSERT INTO u VALUES (1)",
  ],
};

describe("PageLog", () => {
  const folder = mkdtempSync(join(tmpdir(), "trunkline-pages-"));
  after(() => rmSync(folder, { recursive: true }));
  let files = 0;
  const open = (image: Buffer = Buffer.alloc(0)) => {
    files += 1;
    const path = join(folder, `${files}.db`);
    return { path, log: new PageLog(path, image) };
  };

  for (const [name, commits] of Object.entries(CASES)) {
    it(`take() has all of ${name}`, () => {
      const { path, log } = open();
      const records: Uint8Array[] = [];
      let image: { bytes: Uint8Array; at: number } | undefined;
      for (const [index, sql] of commits.entries()) {
        log.database.exec(sql);
        const record = log.take();
        if (record !== undefined) records.push(record);
        if (index === 1) image = { bytes: log.takeImage(), at: records.length };
      }
      const restored = restoreImage(undefined, records);
      const fromImage = restoreImage(image?.bytes, records.slice(image?.at));
      log.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      const file = readFileSync(path);
      expect(restored.equals(file)).to.equal(true);
      expect(fromImage.equals(file)).to.equal(true);
      const again = open(restored).log;
      expect(again.database.prepare("PRAGMA integrity_check").get()).to.include({
        integrity_check: "ok",
      });
      expect(again.isDirty).to.equal(false);
      again.close();
      log.close();
    });
  }

  it("take() gives nothing when nothing was committed", () => {
    const { log } = open();
    expect(log.take()).to.equal(undefined);
    log.database.exec("CREATE TABLE t (v)");
    expect(log.isDirty).to.equal(true);
    expect(log.take()).to.not.equal(undefined);
    expect(log.isDirty).to.equal(false);
    log.database.exec("BEGIN; INSERT INTO t VALUES (1); ROLLBACK");
    expect(log.take()).to.equal(undefined);
    log.database.prepare("SELECT * FROM t").all();
    expect(log.isDirty).to.equal(false);
    log.close();
  });

  it("a log continues from its restored state over many commits, also when the write-ahead file is folded in between", () => {
    let image: Uint8Array | undefined;
    let records: Uint8Array[] = [];
    for (let life = 0; life < 4; life += 1) {
      const { log } = open(restoreImage(image, records));
      log.database.exec("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v)");
      const insert = log.database.prepare("INSERT INTO t (v) VALUES (randomblob(?))");
      for (let commit = 0; commit < 60; commit += 1) {
        insert.run(commit * 700);
        insert.run(10);
        if (commit % 7 === 3) log.database.exec("DELETE FROM t WHERE id % 5 = 0");
        if (commit % 3 === 0) log.absorb();
        records = [...records, log.take() as Uint8Array, emptyRecord()];
      }
      if (life === 1) {
        image = log.takeImage();
        records = [];
      }
      const rows = rowsOf(log.database);
      const next = open(restoreImage(image, records)).log;
      expect(rowsOf(next.database)).to.deep.equal(rows);
      next.close();
      log.close();
    }
  });

  it("settle() leaves writes that every owner repeats to the next record", () => {
    const { log } = open();
    log.database.exec("CREATE TABLE t (v)");
    log.settle();
    expect(log.isDirty).to.equal(false);
    expect(log.take()).to.equal(undefined);
    log.database.exec("INSERT INTO t VALUES (1)");
    const restored = open(restoreImage(undefined, [log.take() as Uint8Array])).log;
    expect(rowsOf(restored.database)).to.have.length(1);
    restored.close();
    log.close();
  });

  it("a record with more than 2 KB between its zeros is compressed, and both forms are readable", () => {
    const { log } = open();
    log.database.exec("CREATE TABLE t (v)");
    const records = [log.take() as Uint8Array];
    const insert = log.database.prepare("INSERT INTO t VALUES (?)");
    for (const [length, isLarge] of [
      [1_800, false],
      [2_100, true],
    ] as const) {
      insert.run(Buffer.alloc(length, 7));
      const record = log.take() as Uint8Array;
      expect(isZstd(record), String(length)).to.equal(isLarge);
      records.push(record);
    }
    const restored = restoreImage(undefined, records);
    log.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    expect(restored.equals(readFileSync(log.database.location() ?? ""))).to.equal(true);
    log.close();
  });

  it("a record of a small change is small", () => {
    const { log } = open();
    log.database.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    log.database.exec(
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t (v) SELECT hex(randomblob(50)) FROM n",
    );
    log.take();
    log.database.exec("UPDATE t SET v = 'x' WHERE id = 10000");
    expect((log.take() as Uint8Array).length).to.be.lessThan(400);
    log.close();
  });

  it("costs two descriptors, and a third only of those that were used last", function () {
    if (!existsSync("/proc/self/fd")) this.skip();
    const count = () => readdirSync("/proc/self/fd").length;
    const before = count();
    const logs = Array.from({ length: 2 * APP_WAL_FILES_MAX }, (_, index) => {
      const log = new PageLog(join(folder, `many-${index}.db`), restoreImage(undefined, []));
      log.database.exec("CREATE TABLE t (v); INSERT INTO t VALUES (1)");
      log.absorb();
      return log;
    });
    expect(count() - before).to.equal(APP_AGENT_FILES * logs.length + APP_WAL_FILES_MAX);
    expect(existsSync(join(folder, "many-0.db-shm"))).to.equal(false);
    // Logs whose write-ahead file was closed meanwhile continue at the right position.
    for (const log of [...logs, ...logs]) {
      log.take();
      log.database.exec("INSERT INTO t VALUES (2)");
      expect(log.isDirty).to.equal(true);
    }
    for (const log of logs) log.close();
    expect(count()).to.equal(before);
  });
});

/** RFC 8878, section 3.1.1. */
const isZstd = (record: Uint8Array | undefined) =>
  Buffer.from(record ?? [])
    .subarray(0, 4)
    .toString("hex") === "28b52ffd";

function rowsOf(database: DatabaseSync): unknown[] {
  return database.prepare("SELECT *, hex(v) AS h FROM t").all();
}
