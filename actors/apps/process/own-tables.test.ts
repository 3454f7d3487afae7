import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { AgentDatabase } from "./agent-database.ts";
import { createOwnTables, isEmptyDatabase } from "./own-tables.ts";
import { PageLog, restoreImage } from "./page-log.ts";

describe("isEmptyDatabase()", () => {
  let folder: string;
  let database: AgentDatabase;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "trunkline-own-tables-"));
    const log = new PageLog(join(folder, "agent.db"), restoreImage(undefined, []));
    database = new AgentDatabase(log, () => {});
    createOwnTables(database);
  });
  afterEach(() => {
    database.close();
    rmSync(folder, { recursive: true });
  });

  /** Each stores something, and removes it again. */
  const CASES: Readonly<Record<string, readonly [string, string]>> = {
    "a table of the app": ["CREATE TABLE kept (v)", "DROP TABLE kept"],
    "a view of the app": ["CREATE VIEW kept AS SELECT 1", "DROP VIEW kept"],
    "the number of the app's schema": ["PRAGMA user_version = 1", "PRAGMA user_version = 0"],
    "the id of the app": ["PRAGMA application_id = 1", "PRAGMA application_id = 0"],
    "a state or an alarm": [
      "INSERT INTO _trunkline_values VALUES ('alarm', 1)",
      "UPDATE _trunkline_values SET value = NULL",
    ],
    "a value of the storage": [
      "INSERT INTO _trunkline_storage VALUES ('a', x'00')",
      "DELETE FROM _trunkline_storage",
    ],
    "a socket": [
      "INSERT INTO _trunkline_connections VALUES ('g', 1, 'c', '', '[]', NULL, 0, 1, '')",
      "DELETE FROM _trunkline_connections",
    ],
    "a timer": [
      "INSERT INTO _trunkline_schedules (id, callback, type, at, retry) VALUES ('a', 'b', 'delayed', 1, '')",
      "DELETE FROM _trunkline_schedules",
    ],
    "a queued call": [
      "INSERT INTO _trunkline_queue (id, callback, created_at, retry) VALUES ('a', 'b', 1, '')",
      "DELETE FROM _trunkline_queue",
    ],
    "a submission": [
      "INSERT INTO _trunkline_submissions (id, method, retry, status, created_at) VALUES ('a', 'b', '', '', 1)",
      "DELETE FROM _trunkline_submissions",
    ],
  };
  for (const [name, [store, remove]] of Object.entries(CASES)) {
    it(`is false with ${name}, and true without`, () => {
      expect(isEmptyDatabase(database)).to.equal(true);
      database.ownScript(store);
      expect(isEmptyDatabase(database)).to.equal(false);
      database.ownScript(remove);
      expect(isEmptyDatabase(database)).to.equal(true);
    });
  }

  it("is true with replies and settled calls", () => {
    database.ownScript(`INSERT INTO _trunkline_answered VALUES (1, 'a', NULL, NULL, x'00');
      INSERT INTO _trunkline_settled (client, below) VALUES ('c', 2)`);
    expect(isEmptyDatabase(database)).to.equal(true);
  });
});
