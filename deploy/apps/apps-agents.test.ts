/** Tests of the REST API for an app's agents. */
import { expect } from "chai";
import {
  AGENT_QUERY_CELL_CHARS_MAX,
  AGENT_QUERY_ROWS_MAX,
  AGENT_QUERY_SQL_CHARS_MAX,
  AGENT_STATE_SHOWN_CHARS_MAX,
  CALL_INLINE_BYTES_MAX,
} from "../../schemas/apps/limits.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";

const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Notes extends Agent {
  initialState = { n: 0 };
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)\`; }
  async onRequest(request) {
    const { searchParams } = new URL(request.url);
    const n = Number(searchParams.get("n"));
    for (let i = 0; i < n; i++) this.sql\`INSERT INTO notes (text) VALUES (\${"note " + i})\`;
    const chars = Number(searchParams.get("chars") ?? 0);
    this.setState({ n, text: "x".repeat(chars) });
    if (searchParams.has("later")) await this.schedule(3600, "remind", { a: 1 });
    return new Response("ok");
  }
  remind() {}
  add(one, other = 1) { return { sum: one + other }; }
  nothing() {}
  refuse() { throw new RangeError("the reason"); }
  endless() { const list = []; list.push(list); return list; }
  long(chars) { return "x".repeat(chars); }
  large(chars) { return "x".repeat(chars); }
}
export class Other extends Agent { onRequest() { return new Response("other"); } }
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("no", { status: 404 }) };
`;
const CLASSES = ["Notes", "Other"].map((name) => ({ binding: name, class_name: name }));

describe("agents by REST", function () {
  this.timeout(240_000);
  let platform: AppPlatform;
  before(async () => {
    platform = await AppPlatform.start();
    const deployed = await platform.deploy("diary", BUNDLE, { agents: CLASSES });
    expect(deployed.status, JSON.stringify(deployed.body)).to.equal(200);
    for (const path of ["notes/a?n=3&later", "notes/b%20%C3%BC.x?n=0", "other/a"]) {
      expect((await platform.ask("diary", `/agents/${path}`)).status, path).to.equal(200);
    }
  });
  after(() => platform?.[Symbol.asyncDispose]());

  const names = async (query: string) => {
    const { status, body } = await platform.rest("GET", `/apps/diary/agents${query}`);
    if (status !== 200) return status;
    return body.result.map((one: Record<string, string>) => `${one.class_name} ${one.name}`);
  };
  const query = async (sql: string, agent = "Notes/a") =>
    platform.rest("POST", `/apps/diary/agents/${agent}/query`, { sql });

  it("are listed by class and name, in pages", async () => {
    expect(await names("")).to.deep.equal(["Notes a", "Notes b ü.x", "Other a"]);
    expect(await names("?class_name=Notes")).to.have.length(2);
    expect(await names("?class_name=Not")).to.deep.equal([]);
    expect(await names("?contains=%C3%BC")).to.deep.equal(["Notes b ü.x"]);
    expect(await names("?per_page=1&page=3")).to.deep.equal(["Other a"]);
    for (const wrong of ["?page=0", "?per_page=101", "?class_name=a-b"]) {
      expect(await names(wrong), wrong).to.equal(400);
    }
    expect((await platform.rest("GET", "/apps/nothing/agents")).status).to.equal(404);
  });

  it("show state, tables, timers and connections, and are not made by a look", async () => {
    const { body } = await platform.rest("GET", "/apps/diary/agents/Notes/a");
    expect(body.result).to.deep.include({ class_name: "Notes", name: "a", version: 1 });
    expect(body.result.state).to.deep.equal({ n: 3, text: "" });
    expect(body.result.tables).to.deep.equal([{ name: "notes", columns: ["id", "text"] }]);
    expect(body.result.connections).to.equal(0);
    const [timer] = body.result.timers;
    expect(timer).to.include({ method: "remind", type: "delayed", error: null });
    expect(body.result.next_wake_on).to.equal(timer.due_on);
    const none = await platform.rest("GET", "/apps/diary/agents/Notes/nobody");
    expect(none.status).to.equal(404);
    expect((await query("SELECT 1", "Notes/nobody")).status).to.equal(404);
    expect(await names("?contains=nobody")).to.deep.equal([]);
  });

  it("need apps.read to be seen, and apps.write to be queried and called", async () => {
    const { base_url: base, account_id: account } = platform.credentials;
    const statuses = async (permission: string) => {
      const policies = [{ effect: "allow", permission_groups: [{ id: permission }] }];
      const made = await platform.rest("POST", "/tokens", { name: permission, policies });
      const headers = {
        authorization: `Bearer ${made.body.result.value}`,
        "content-type": "application/json",
      };
      const agents = `${base}/accounts/${account}/apps/diary/agents`;
      const body = JSON.stringify({ sql: "SELECT 1" });
      const add = JSON.stringify({ method: "add", arguments: [1] });
      const answers = await Promise.all([
        fetch(agents, { headers }),
        fetch(`${agents}/Notes/a`, { headers }),
        fetch(`${agents}/Notes/a/query`, { method: "POST", headers, body }),
        fetch(`${agents}/Notes/a/call`, { method: "POST", headers, body: add }),
      ]);
      return answers.map(({ status }) => status);
    };
    expect(await statuses("artifacts.write")).to.deep.equal([403, 403, 403, 403]);
    expect(await statuses("apps.read")).to.deep.equal([200, 200, 403, 403]);
    expect(await statuses("apps.write")).to.deep.equal([200, 200, 200, 200]);
  });

  it("show a state of the longest length, and of a longer one its length", async () => {
    const about = JSON.stringify({ n: 0, text: "" }).length;
    for (const over of [0, 1]) {
      const chars = AGENT_STATE_SHOWN_CHARS_MAX - about + over;
      await platform.ask("diary", `/agents/notes/long?n=0&chars=${chars}`);
      const { body } = await platform.rest("GET", "/apps/diary/agents/Notes/long");
      expect(body.result.state_chars).to.equal(AGENT_STATE_SHOWN_CHARS_MAX + over);
      expect(body.result.state === null).to.equal(over === 1);
    }
  });

  it("read their own tables by SQL, within bounds", async () => {
    const { body } = await query("SELECT id, text, text FROM notes WHERE id < 3");
    expect(body.result).to.deep.equal({
      columns: ["id", "text", "text"],
      rows: [
        [1, "note 0", "note 0"],
        [2, "note 1", "note 1"],
      ],
      is_cut: false,
    });
    const values = "SELECT 9007199254740993, x'ff00', NULL, 1.5, 9e999";
    expect((await query(values)).body.result.rows).to.deep.equal([
      ["9007199254740993", { base64: "/wA=" }, null, 1.5, "Infinity"],
    ]);
    expect((await query("PRAGMA table_info(notes)")).body.result.rows).to.have.length(2);
    const series = (count: number) =>
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i FROM n`;
    for (const over of [0, 1]) {
      const { result } = (await query(series(AGENT_QUERY_ROWS_MAX + over))).body;
      expect([result.rows.length, result.is_cut]).to.deep.equal([AGENT_QUERY_ROWS_MAX, over === 1]);
      const text = `SELECT printf('%.*c', ${AGENT_QUERY_CELL_CHARS_MAX + over}, 'é')`;
      expect((await query(text)).body.result.is_cut).to.equal(over === 1);
    }
    const wide = await query(
      "SELECT printf('%.*c', 4000, char(1)) FROM notes, notes AS b, notes AS c, notes AS d",
    );
    expect(wide.status).to.equal(200);
    expect(wide.body.result.is_cut).to.equal(true);
    for (const over of [0, 1]) {
      const { status } = await query("SELECT 1".padStart(AGENT_QUERY_SQL_CHARS_MAX + over));
      expect(status).to.equal(over === 1 ? 400 : 200);
    }
  });

  it("answer calls of their public methods, with JSON", async () => {
    const call = (json: unknown, agent = "Notes/a") =>
      platform.rest("POST", `/apps/diary/agents/${agent}/call`, json);
    const { body } = await call({ method: "add", arguments: [40, 2] });
    expect(body.result).to.deep.equal({ result: { sum: 42 } });
    expect((await call({ method: "add", arguments: [1] })).body.result.result).to.deep.equal({
      sum: 2,
    });
    expect((await call({ method: "nothing" })).body.result).to.deep.equal({ result: null });
    const failed = await call({ method: "refuse" });
    expect(failed.status).to.equal(500);
    expect(failed.body.errors[0].message).to.contain("RangeError: the reason");
    for (const method of ["none", "constructor", "toString", "__proto__"]) {
      const { status, body: refused } = await call({ method });
      expect(status, method).to.equal(500);
      expect(refused.errors[0].message).to.contain(`Method ${method} does not exist`);
    }
    const endless = await call({ method: "endless" });
    expect(endless.body.errors[0].message).to.contain("Cannot pass on what endless gave");
    const long = (bytes: number) => call({ method: "long", arguments: [bytes - '""'.length] });
    const most = await long(CALL_INLINE_BYTES_MAX);
    expect(JSON.stringify(most.body.result.result)).to.have.length(CALL_INLINE_BYTES_MAX);
    const over = (await long(CALL_INLINE_BYTES_MAX + 1)).body.errors[0].message;
    expect(over).to.contain(`it has more than ${CALL_INLINE_BYTES_MAX} bytes`);
    for (const wrong of [{}, { method: "" }, { method: "add", arguments: {} }]) {
      expect((await call(wrong)).status).to.equal(400);
    }
    expect((await call({ method: "add" }, "Notes/nobody")).status).to.equal(404);
  });

  it("refuse SQL that writes, leaves the database, or reads the platform's tables", async () => {
    const refused = [
      "DELETE FROM notes",
      "INSERT INTO notes (text) VALUES ('x')",
      "CREATE TABLE t (a)",
      "DROP TABLE notes",
      "BEGIN",
      "VACUUM",
      "VACUUM INTO '/tmp/x'",
      "ATTACH '/tmp/x' AS x",
      "PRAGMA user_version = 7",
      "PRAGMA integrity_check",
      "SELECT load_extension('x')",
      "SELECT * FROM _trunkline_values",
      "SELECT * FROM (SELECT * FROM _trunkline_connections)",
      "SELECT * FROM sqlite_dbpage",
      "WITH d AS (SELECT 1) DELETE FROM notes",
      "SELECT 1; DELETE FROM notes",
      "SELECT ?; DROP TABLE notes",
      "ANALYZE",
      "REINDEX",
      "",
      "no sql",
    ];
    for (const sql of refused) {
      const { status, body } = await query(sql);
      expect(status, `${sql} ${JSON.stringify(body)}`).to.equal(400);
    }
    const { body } = await query("SELECT count(*) FROM notes");
    expect(body.result.rows).to.deep.equal([[3]]);
    expect((await platform.ask("diary", "/agents/notes/a?n=1")).status).to.equal(200);
  });
});
