import { serialize } from "node:v8";
import { expect } from "chai";
import type { TurnResult } from "../../../schemas/apps/app-process.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  MemoryHost,
  RefusedTurn,
  responseOf,
  wireRequest,
} from "../package/testing/memory-host.ts";

const CODE = `
import { Agent, getAgentByName, getCurrentAgent, routeAgentRequest, SqlError } from "trunkline/agents";

export class Ledger extends Agent<any, { n: number }> {
  initialState = { n: 0 };
  order: string[] = [];
  onStart(props) {
    this.sql\`CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, what TEXT NOT NULL)\`;
    if (props) this.sql\`INSERT INTO entries (what) VALUES (\${"props " + JSON.stringify(props)})\`;
  }
  async onRequest(request) {
    const url = new URL(request.url);
    if (url.pathname === "/throw") { this.add("before the throw"); throw new Error("it broke"); }
    if (url.pathname === "/big") return new Response(new Uint8Array(Number(url.searchParams.get("bytes"))));
    if (url.pathname === "/fail") { this.add("a failed try"); return new Response("no", { status: 503 }); }
    if (url.pathname.startsWith("/status-")) { this.add("a failed try"); return new Response(null, { status: Number(url.pathname.slice(8)) }); }
    if (url.pathname === "/nothing") return undefined;
    if (url.pathname === "/echo") return new Response(request.body, { status: 201, headers: [["x-a", request.headers.get("x-a")], ["set-cookie", "a=1"], ["set-cookie", "b=2"]] });
    this.add(request.method + " " + url.pathname);
    return Response.json(this.all());
  }
  add(what) { this.sql\`INSERT INTO entries (what) VALUES (\${what})\`; return this.all().length; }
  all() { return this.sql\`SELECT what FROM entries ORDER BY id\`.map(({ what }) => what); }
  async slow(ms) { this.order.push("begin " + ms); await new Promise((resolve) => setTimeout(resolve, ms)); this.order.push("end " + ms); return this.order; }
  held = Promise.withResolvers();
  letGo() { this.held.resolve(); }
  async waits(name) { this.order.push("begin " + name); await this.held.promise; this.order.push("end " + name); return this.order; }
  async addThenFetch(what) { this.add(what); const response = await fetch("https://elsewhere.example/"); return response.status; }
  who() { const { agent, request, connection } = getCurrentAgent(); return [agent === this, request?.url, connection]; }
  async ask(name, method, ...args) { const other = await getAgentByName(this.env.Ledger, name); return other[method](...args); }
  async askByFetch(name) { return await (await this.env.Ledger.getByName(name).fetch("http://x/asked", { method: "PUT", body: "b" })).json(); }
  async query(text, ...values) { return this.ctx.storage.sql.exec(text, ...values).toArray(); }
  tagged(value) { try { return this.sql\`SELECT \${value} AS v\`; } catch (error) { return [error instanceof SqlError, error.message]; } }
  inTransaction(doThrow) {
    try { this.ctx.storage.transactionSync(() => { this.add("in it"); this.broadcast("x"); if (doThrow) throw new Error("undone"); }); } catch (error) { return error.message; }
    return this.all();
  }
  asyncTransaction() { return this.ctx.storage.transactionSync(async () => { this.add("never"); }); }
  async keyValue() {
    const { storage } = this.ctx;
    await storage.put("a", { deep: new Map([[1, new Date(0)]]) }); await storage.put({ b: 2, c: 3, d_: 4 });
    const list = await storage.list({ start: "b", limit: 2 });
    const prefixed = await storage.list({ prefix: "d_", reverse: true });
    return [(await storage.get("a")).deep.get(1).getTime(), [...list], [...prefixed.keys()], await storage.delete("b"), await storage.delete("b"), (await storage.get(["a", "b", "c"])).size];
  }
  later(ms) { this.ctx.waitUntil(new Promise((resolve) => setTimeout(() => { this.add("later"); resolve(0); }, ms))); }
  untracked(ms) { setTimeout(() => this.add("untracked"), ms); }
  fill(megabytes) { for (let i = 0; i < megabytes; i += 1) this.sql\`INSERT INTO entries (what) VALUES (hex(zeroblob(524288)))\`; }
  churn(times) { for (let i = 0; i < times; i += 1) this.sql\`UPDATE entries SET what = hex(randomblob(30000)) WHERE id = 1\`; return this.all()[0].length; }
  async end() { this.add("gone"); this.setState({ n: 9 }); await this.ctx.storage.put("k", 1); await this.destroy(); return "destroyed"; }
  async kept() { return [this.all().length, this.state.n, await this.ctx.storage.get("k")]; }
  crash() { const { promise } = Promise.withResolvers(); Promise.reject(new Error("nobody caught it")); setTimeout(() => { throw new Error("nor this"); }, 1); return 1; }
}
export class Strict extends Agent<any> {
  static options = { serialTurns: true };
  order: string[] = [];
  async slow(ms) { this.order.push("begin " + ms); await new Promise((resolve) => setTimeout(resolve, ms)); this.order.push("end " + ms); return this.order; }
  async outside() { await fetch("https://elsewhere.example/"); }
  never() { return new Promise(() => {}); }
  now() { return "now"; }
}
let starts = 0;
export class Fragile extends Agent<any> {
  onStart() { starts += 1; if (starts < 3) throw new Error("not yet"); }
  hello() { return starts; }
}
export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname === "/env") return Response.json({ secret: env.SECRET, frozen: Object.isFrozen(env) });
    if (url.pathname === "/slow") { await new Promise((resolve) => setTimeout(resolve, 60_000)); }
    if (url.pathname === "/log") { console.log("one", { a: 1 }); console.error("two"); console.table([1]); return new Response("ok"); }
    const routed = await routeAgentRequest(request, env, {
      cors: url.searchParams.has("cors"),
      props: url.searchParams.has("props") ? { from: "route" } : undefined,
      onBeforeRequest: (request, route) => {
        if (url.searchParams.has("deny")) return new Response("denied " + route.className + " " + route.name, { status: 403 });
        if (url.searchParams.has("change")) return new Request(request, { headers: { "x-a": "changed" } });
      },
    });
    return routed ?? new Response("nothing here", { status: 404 });
  },
};
`;

describe("an app's process: turns", function () {
  this.timeout(120_000);
  const agents = ["Ledger", "Strict", "Fragile"].map((name) => ({
    binding: name,
    className: name,
  }));
  const nothing = { type: "answer" as const, answer: { status: 204, headers: [] } };
  let host: MemoryHost;
  /** A host whose turns have little time. */
  let brief: MemoryHost;
  before(async () => {
    host = await MemoryHost.start({
      code: CODE,
      values: { SECRET: "s3cret" },
      agents,
      limits: { answerBytes: 1_000_000 },
      operate: async () => nothing,
    });
    brief = await MemoryHost.start({ code: CODE, agents, limits: { turnMs: 500 } });
  });
  after(async () => {
    await host.stop();
    await brief.stop();
  });

  const names = new Set<string>();
  const fresh = (className = "Ledger") => {
    const key = `${className}/${names.size}`;
    names.add(key);
    return key;
  };
  const refused = async (turn: Promise<unknown>): Promise<RefusedTurn> => {
    try {
      await turn;
    } catch (error) {
      if (error instanceof RefusedTurn) return error;
      throw error;
    }
    throw new Error("Expected a refusal");
  };

  describe("the entry", () => {
    it("answers by the default export, with vars and secrets in env", async () => {
      expect(host.classes.sort()).to.deep.equal(["Fragile", "Ledger", "Strict"]);
      expect(await (await host.entry("/env")).json()).to.deep.equal({
        secret: "s3cret",
        frozen: true,
      });
      expect((await host.entry("/else")).status).to.equal(404);
    });

    it("leads to agents by their path", async () => {
      const response = await host.entry("/agents/ledger/some%20one/deep?x=1", { method: "POST" });
      expect(await response.json()).to.deep.equal(["POST /agents/ledger/some%20one/deep"]);
      expect(await host.invoke("Ledger/some one", "all")).to.have.length(1);
    });

    it("an unknown class is 400, and a path without a name is no path of agents", async () => {
      const response = await host.entry("/agents/nobody/x");
      expect([response.status, await response.text()]).to.deep.equal([400, "Invalid request"]);
      expect((await host.entry("/agents/ledger")).status).to.equal(404);
      expect((await host.entry("/agents/ledger/%zz")).status).to.equal(400);
    });

    it("hooks answer in the agent's place, and change its request", async () => {
      const denied = await host.entry("/agents/ledger/h?deny");
      expect([denied.status, await denied.text()]).to.deep.equal([403, "denied Ledger h"]);
      const init = { method: "POST", body: "text", headers: { "x-a": "own" } };
      const changed = await host.request("Ledger/h", "/echo", init);
      expect(changed.headers.get("x-a")).to.equal("own");
    });

    it("cors adds its headers and answers OPTIONS", async () => {
      const asked = await host.entry("/agents/ledger/c?cors", { method: "OPTIONS" });
      expect(asked.status).to.equal(200);
      const answered = await host.entry("/agents/ledger/c?cors");
      for (const { headers } of [asked, answered]) {
        expect(headers.get("access-control-allow-origin")).to.equal("*");
        expect(headers.get("access-control-max-age")).to.equal("86400");
      }
    });

    it("props of the router reach onStart, and only when the agent starts", async () => {
      const first = await host.entry("/agents/ledger/props?props");
      expect(await first.json()).to.deep.equal([
        'props {"from":"route"}',
        "GET /agents/ledger/props",
      ]);
      const second = await host.entry("/agents/ledger/props?props");
      expect(await second.json()).to.have.length(3);
    });

    it("refuses an entry past its time", async () => {
      const error = await refused(brief.entry("/slow"));
      expect(error.error.refusal).to.equal("deadline_exceeded");
    });

    it("console goes to the log", async () => {
      host.lines.length = 0;
      await host.entry("/log");
      expect(host.lines.slice(0, 2).map(({ level, text }) => [level, text])).to.deep.equal([
        ["info", "one { a: 1 }"],
        ["error", "two"],
      ]);
      expect(host.lines[2]?.text).to.include("│");
    });
  });

  describe("requests", () => {
    it("bodies, headers and cookies cross as they are", async () => {
      const response = await host.request(fresh(), "/echo", {
        method: "POST",
        body: new Uint8Array([0, 255, 128]),
        headers: { "X-A": "ä".normalize("NFC").replace("ä", "a") },
      });
      expect(response.status).to.equal(201);
      expect(response.headers.getSetCookie()).to.deep.equal(["a=1", "b=2"]);
      expect([...new Uint8Array(await response.arrayBuffer())]).to.deep.equal([0, 255, 128]);
    });

    it("an answer may be as large as the limit, and no larger", async () => {
      const key = fresh();
      const whole = await host.request(key, "/big?bytes=1000000");
      expect((await whole.arrayBuffer()).byteLength).to.equal(1_000_000);
      const error = await refused(host.request(key, "/big?bytes=1000001"));
      expect(error.error.refusal).to.equal("body_too_large");
    });

    it("a turn that throws is refused with its error, and its earlier writes stay", async () => {
      const key = fresh();
      const error = await refused(host.request(key, "/throw"));
      expect(error.error).to.include({ name: "Error", message: "it broke" });
      expect(error.error.refusal).to.equal(undefined);
      expect(await host.invoke(key, "all")).to.deep.equal(["before the throw"]);
      expect((await refused(host.request(key, "/nothing"))).message).to.match(
        /expected a Response/,
      );
    });

    it("getCurrentAgent() knows the running agent", async () => {
      expect(await host.invoke(fresh(), "who")).to.deep.equal([true, undefined, undefined]);
    });
  });

  describe("calls", () => {
    it("reach public methods and nothing that every object has", async () => {
      const key = fresh();
      expect(await host.invoke(key, "add", "x")).to.equal(1);
      for (const name of ["missing", "constructor", "toString", "__proto__", "state"]) {
        expect((await refused(host.invoke(key, name))).message).to.match(/does not exist/);
      }
    });

    it("between agents go over the host, with errors and results as they are", async () => {
      const [one, other] = [fresh(), fresh()];
      const name = other.slice("Ledger/".length);
      expect(await host.invoke(one, "ask", name, "add", "by another")).to.equal(1);
      expect(await host.invoke(one, "askByFetch", name)).to.deep.equal([
        "by another",
        "PUT /asked",
      ]);
      const error = await refused(host.invoke(one, "ask", name, "missing"));
      expect(error.error).to.include({
        name: "TypeError",
        message: "Method missing does not exist",
      });
    });

    it("begin in order and may interleave; strict ones do not", async () => {
      const loose = fresh();
      const first = host.invoke(loose, "waits", "first");
      const second = host.invoke(loose, "slow", 1);
      expect(await second).to.deep.equal(["begin first", "begin 1", "end 1"]);
      await host.invoke(loose, "letGo");
      expect(await first).to.deep.equal(["begin first", "begin 1", "end 1", "end first"]);
      const strict = fresh("Strict");
      const [, serial] = await Promise.all([80, 20].map((ms) => host.invoke(strict, "slow", ms)));
      expect(serial).to.deep.equal(["begin 80", "end 80", "begin 20", "end 20"]);
    });

    it("past their time are refused, and those behind a strict one go on", async () => {
      const key = fresh("Strict");
      const [never, next] = [brief.invoke(key, "never"), brief.invoke(key, "now")];
      expect((await refused(never)).error.refusal).to.equal("deadline_exceeded");
      expect(await next).to.equal("now");
    });

    it("more than may wait are refused as busy", async () => {
      const key = fresh("Strict");
      const held = Promise.withResolvers<typeof nothing>();
      const own = await MemoryHost.start({ code: CODE, agents, operate: () => held.promise });
      try {
        const first = own.invoke(key, "outside");
        const turns = Array.from({ length: 1_000 }, () => own.invoke(key, "now"));
        // All turns are requested before any of them has ended.
        const error = await refused(Promise.all(turns));
        expect(error.error.refusal).to.equal("busy");
        held.resolve(nothing);
        const outcomes = await Promise.allSettled([first, ...turns]);
        expect(outcomes.filter(({ status }) => status === "rejected")).to.have.length(1);
      } finally {
        await own.stop();
      }
    });

    it("onStart that throws refuses the turns that wait, and is tried again by the next", async () => {
      const key = fresh("Fragile");
      expect((await refused(host.invoke(key, "hello"))).message).to.equal("not yet");
      expect((await refused(host.invoke(key, "hello"))).message).to.equal("not yet");
      expect(await host.invoke(key, "hello")).to.equal(3);
    });

    it("uncaught errors are logged, and the process goes on", async () => {
      host.lines.length = 0;
      expect(await host.invoke(fresh(), "crash")).to.equal(1);
      await until("both are logged", () => host.lines.length >= 2);
      expect(host.lines.map(({ text }) => text).join()).to.match(/nobody caught it[\s\S]*nor this/);
    });
  });

  describe("SQL", () => {
    it("takes several statements, DDL, JSON, full text search and triggers", async () => {
      const key = fresh();
      const rows = await host.invoke(
        key,
        "query",
        `CREATE TABLE t (j TEXT); -- a comment; with a semicolon
        CREATE TABLE n (n); INSERT INTO n VALUES (0);
        CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE n SET n = n + 1; SELECT 1; END;
        INSERT INTO t VALUES ('{"a":[1,2]}');
        CREATE VIRTUAL TABLE f USING fts5(body);
        INSERT INTO f VALUES ('red fox'), ('blue fish');
        SELECT (SELECT n FROM n) AS n, json_extract(j, '$.a[1]') AS two, (SELECT body FROM f WHERE f MATCH ?) AS found FROM t; /* end */ ;`,
        "fox",
      );
      expect(rows).to.deep.equal([{ n: 1, two: 2, found: "red fox" }]);
    });

    const bad: [string, unknown, RegExp][] = [
      ["undefined", undefined, /Cannot bind value 1: it is undefined; use null/],
      ["a Date", new Date(0), /a Date; use toISOString/],
      ["an object", { a: 1 }, /an object; use JSON.stringify/],
      ["an array", [1], /an object/],
      ["NaN", Number.NaN, /NaN would be stored as NULL/],
      ["65 bits", 2n ** 63n, /more than 64 bits/],
    ];
    for (const [name, value, message] of bad) {
      it(`refuses to bind ${name}`, async () => {
        const [isSqlError, text] = (await host.invoke("Ledger/values", "tagged", value)) as [
          boolean,
          string,
        ];
        expect(isSqlError).to.equal(true);
        expect(text).to.match(message);
      });
    }

    const miscounted: [string, ...number[]][] = [
      ["SELECT ? AS a"],
      ["SELECT ? AS a, ? AS b", 1],
      ["SELECT 1 AS a", 1],
      ["SELECT ? AS a; SELECT ? AS b", 1],
      ["SELECT ?2 AS a", 1],
    ];
    for (const [sql, ...values] of miscounted) {
      it(`refuses ${sql} with ${values.length} values`, async () => {
        const wanted = new RegExp(`Cannot bind ${sql.includes(";") ? 0 : values.length} values`);
        // A cached statement must not reuse the values that were bound earlier.
        await host.invoke("Ledger/values", "query", "SELECT ? AS a", 1);
        const error = await refused(host.invoke("Ledger/values", "query", sql, ...values));
        expect(error.message).to.match(wanted);
      });
    }

    it("binds text, numbers, bigints, booleans, null and bytes", async () => {
      const values: [unknown, unknown][] = [
        ["ä", "ä"],
        [1.5, 1.5],
        [2n ** 40n, 2 ** 40],
        [true, 1],
        [null, null],
        [new Uint8Array([1, 2]), new Uint8Array([1, 2])],
      ];
      for (const [value, read] of values) {
        expect(await host.invoke("Ledger/values", "tagged", value)).to.deep.equal([{ v: read }]);
      }
    });

    it("integers past 2^53 are a clear error, and text can be had", async () => {
      const error = await refused(
        host.invoke("Ledger/values", "query", "SELECT 9007199254740993 AS n"),
      );
      expect(error.message).to.match(/past 2\^53 are read as text: SELECT CAST/);
      const text = "SELECT CAST(9007199254740993 AS TEXT) AS n";
      expect(await host.invoke("Ledger/values", "query", text)).to.deep.equal([
        { n: "9007199254740993" },
      ]);
    });

    const refusedSql: [string, RegExp][] = [
      ["BEGIN", /transactionSync/],
      ["SAVEPOINT a", /transactionSync/],
      ["COMMIT", /transactionSync/],
      ["ATTACH ':memory:' AS x", /ATTACH/],
      ["VACUUM INTO 'x.db'", /ATTACH and VACUUM INTO/],
      ["SELECT 1; ATTACH 'x.db' AS x", /ATTACH/],
      ["SELECT :a AS a", /Cannot bind :a: values have no names here/],
      ["SELECT load_extension('x')", /load_extension reaches outside of the database/],
      ["CREATE TEMP TABLE x (v)", /temporary tables/],
      ["PRAGMA page_size = 512", /PRAGMA page_size/],
      ["PRAGMA journal_mode = DELETE", /PRAGMA journal_mode/],
      ["PRAGMA writable_schema = ON", /PRAGMA writable_schema/],
      ["PRAGMA wal_checkpoint(TRUNCATE)", /PRAGMA wal_checkpoint/],
      ["PRAGMA max_page_count = 1000000", /PRAGMA max_page_count/],
      ["SELECT * FROM _trunkline_values", /the platform's own table/],
      ["CREATE VIEW o AS SELECT * FROM _trunkline_values; SELECT * FROM o", /own table/],
      ["CREATE VIRTUAL TABLE x USING dbstat", /virtual tables are of fts3/],
      ["DROP TABLE _trunkline_queue", /the platform's own table/],
      ["ALTER TABLE _trunkline_queue ADD COLUMN x", /the platform's own table/],
      ["CREATE INDEX i ON _trunkline_queue (id)", /the platform's own table/],
      ["SELEC 1", /syntax error/],
      [" -- nothing", /no statements/],
    ];
    for (const [sql, message] of refusedSql) {
      it(`refuses ${sql}`, async () => {
        expect((await refused(host.invoke("Ledger/values", "query", sql))).message).to.match(
          message,
        );
      });
    }

    for (const sql of [
      "VACUUM",
      "REINDEX",
      "ANALYZE",
      "PRAGMA user_version = 3",
      "PRAGMA table_info(entries)",
      "EXPLAIN SELECT 1",
    ]) {
      it(`takes ${sql}`, async () => {
        await host.invoke("Ledger/values", "query", sql);
      });
    }

    it("a transaction is all or nothing, and may not be asynchronous", async () => {
      const key = fresh();
      expect(await host.invoke(key, "inTransaction", true)).to.equal("undone");
      expect(await host.invoke(key, "all")).to.deep.equal([]);
      expect(await host.invoke(key, "inTransaction", false)).to.deep.equal(["in it"]);
      expect((await refused(host.invoke(key, "asyncTransaction"))).message).to.match(
        /asynchronous/,
      );
      expect(await host.invoke(key, "all")).to.deep.equal(["in it"]);
    });

    it("keys and values beside the tables", async () => {
      expect(await host.invoke(fresh(), "keyValue")).to.deep.equal([
        0,
        [
          ["b", 2],
          ["c", 3],
        ],
        ["d_"],
        true,
        false,
        2,
      ]);
    });

    it("a database at its limit refuses writes, keeps its content, and can be emptied", async () => {
      const own = await MemoryHost.start({
        code: CODE,
        agents: [{ binding: "Ledger", className: "Ledger" }],
        limits: { databaseBytes: 4 * 1024 ** 2 },
      });
      try {
        await own.invoke("Ledger/a", "fill", 3);
        const error = await refused(own.invoke("Ledger/a", "fill", 3));
        expect(error.error.message).to.match(/would be larger than 4 MB/);
        expect(
          await own.invoke("Ledger/a", "query", "SELECT COUNT(*) AS n FROM entries"),
        ).to.deep.equal([{ n: 3 }]);
        // The platform's own rows fit even when the agent's storage is full.
        await own.turn("Ledger/a", { type: "wake" });
        await own.invoke("Ledger/a", "query", "DELETE FROM entries");
        expect(await own.invoke("Ledger/a", "add", "again")).to.equal(1);
        own.close("Ledger/a");
        expect(await own.invoke("Ledger/a", "all")).to.deep.equal(["again"]);
      } finally {
        await own.stop();
      }
    });

    it("many writes of one turn do not pile up in the work folder", async () => {
      const key = fresh();
      await host.invoke(key, "add", "x");
      expect(await host.invoke(key, "churn", 600)).to.equal(60_000);
      expect(host.logs.get(key)?.records.at(-1)?.length).to.be.lessThan(200_000);
    });
  });

  describe("durability", () => {
    it("nothing is answered, and nothing asked of others, before the record is stored", async () => {
      const held = Promise.withResolvers<void>();
      let isHeld = false;
      const own = await MemoryHost.start({
        code: CODE,
        agents: [{ binding: "Ledger", className: "Ledger" }],
        beforeCommit: (_, commit) => {
          if (commit <= 1) return undefined;
          isHeld = true;
          return held.promise;
        },
        operate: async () => ({ type: "answer", answer: { status: 204, headers: [] } }),
      });
      try {
        await own.invoke("Ledger/a", "add", "one");
        let answered = 0;
        const turns = ["add", "addThenFetch", "all"].map((method) =>
          own.invoke("Ledger/a", method, "two").finally(() => {
            answered += 1;
          }),
        );
        await until("the second record waits", () => isHeld);
        // When the process answers this request, messages that it had sent without waiting for the record would also
        // have arrived.
        await own.entry("/env");
        expect([answered, own.operations.length]).to.deep.equal([0, 0]);
        held.resolve();
        expect(await Promise.all(turns)).to.deep.equal([2, 204, ["one", "two", "two"]]);
        expect(own.operations).to.have.length(1);
      } finally {
        await own.stop();
      }
    });

    it("a turn that wrote nothing makes no record", async () => {
      const key = fresh();
      await host.invoke(key, "add", "x");
      const { commits } = host.logs.get(key) as { commits: number };
      await host.invoke(key, "all");
      await host.request(key, "/echo", { method: "POST", body: "x", headers: { "x-a": "1" } });
      expect(host.logs.get(key)?.commits).to.equal(commits);
    });

    it("changes without a turn become durable too", async () => {
      const key = fresh();
      await host.invoke(key, "later", 20);
      await host.invoke(key, "untracked", 40);
      await until(
        "both are stored",
        async () => ((await host.invoke(key, "all")) as string[]).length === 2,
      );
      host.close(key);
      expect(await host.invoke(key, "all")).to.deep.equal(["later", "untracked"]);
    });

    it("one id has one effect: a repetition gets the same answer, at once, after a crash and while it runs", async () => {
      const own = await MemoryHost.start({
        code: CODE,
        agents: [{ binding: "Ledger", className: "Ledger" }],
      });
      let next: MemoryHost | undefined;
      try {
        const add = (at: MemoryHost, id: string) =>
          at.turn(
            "Ledger/a",
            { type: "invoke", method: "add", args: new Uint8Array(serialize({ args: ["x"] })) },
            id,
          );
        const results = await Promise.all([add(own, "1"), add(own, "1"), add(own, "1")]);
        expect(new Set(results.map((result) => JSON.stringify(result))).size).to.equal(1);
        await own.request("Ledger/a", "/once", { id: "2" });
        next = await own.restart();
        expect(JSON.stringify(await add(next, "1"))).to.equal(JSON.stringify(results[0]));
        const again = await next.request("Ledger/a", "/once", { id: "2" });
        expect(await again.json()).to.deep.equal(["x", "GET /once"]);
        await refused(next.request("Ledger/a", "/throw", { id: "3" }));
        await refused(next.request("Ledger/a", "/throw", { id: "3" }));
        expect(await next.invoke("Ledger/a", "all")).to.deep.equal([
          "x",
          "GET /once",
          "before the throw",
        ]);
      } finally {
        await own.stop();
        await next?.stop();
      }
    });

    it("a delivery that failed is run again under its id, one that did not is not", async () => {
      const key = fresh();
      const deliver = async (path: string, attempt: number): Promise<TurnResult> =>
        host.turn(
          key,
          { type: "deliver", deliveryId: "d", attempt, request: await wireRequest(path) },
          path,
        );
      expect(responseOf(await deliver("/fail", 1)).status).to.equal(503);
      expect(responseOf(await deliver("/fail", 2)).status).to.equal(503);
      for (const status of [302, 404]) {
        for (const attempt of [1, 2]) {
          expect(responseOf(await deliver(`/status-${status}`, attempt)).status).to.equal(status);
        }
      }
      await deliver("/good", 1);
      await deliver("/good", 2);
      expect(await host.invoke(key, "all")).to.deep.equal([
        ...Array.from({ length: 6 }, () => "a failed try"),
        "GET /good",
      ]);
    });

    it("records give way to an image when there are many", async () => {
      const key = fresh();
      for (let turn = 0; turn < 420; turn += 1) await host.invoke(key, "add", "x");
      const log = host.logs.get(key);
      expect(log?.image).to.not.equal(undefined);
      expect(log?.records.length).to.be.lessThan(200);
      host.close(key);
      expect(await host.invoke(key, "all")).to.have.length(420);
    });

    it("destroy() removes everything, and the next turn finds a new agent", async () => {
      const key = fresh();
      await host.invoke(
        key,
        "query",
        "CREATE VIRTUAL TABLE f USING fts5(x); CREATE VIEW v AS SELECT 1; CREATE TABLE c (id REFERENCES entries)",
      );
      expect(await host.invoke(key, "end")).to.equal("destroyed");
      expect(await host.invoke(key, "kept")).to.deep.equal([0, 0, undefined]);
      const tables =
        "SELECT name FROM sqlite_master WHERE name NOT LIKE '%trunkline%' AND name NOT LIKE 'sqlite%'";
      expect(await host.invoke(key, "query", tables)).to.deep.equal([{ name: "entries" }]);
      host.close(key);
      expect(await host.invoke(key, "kept")).to.deep.equal([0, 0, undefined]);
    });

    it("inspect shows the agent's work, and idle says that it need not stay", async () => {
      const key = fresh();
      await host.invoke(key, "add", "x");
      const result = await host.turn(key, { type: "inspect" });
      expect(result).to.include({ type: "inspected", connections: 0 });
      await until("it is idle", () => host.idle.get(key));
    });
  });
});
