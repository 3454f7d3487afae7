import { expect } from "chai";
import type { ProcessAction, ProcessConnection } from "../../../schemas/apps/app-process.ts";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent, callable, getAgentByName, getCurrentAgent, routeAgentRequest, unstable_callable } from "trunkline/agents";

/** Code that a method calls knows the agent too. */
const current = () => {
  const { agent, connection, request } = getCurrentAgent();
  return [agent?.name, connection?.id, request && new URL(request.url).pathname];
};

export class Plain extends Agent<any, any> {}

export class Older extends Agent<any, any> {
  updates: unknown[] = [];
  onStateUpdate(state, source) { this.updates.push([state, source === "server" ? source : source.id]); }
  seen() { return this.updates; }
}

export class Agents extends Agent<any, any> {
  initialState = { n: 0 };
  validateStateChange(state, source) { if (state.n < 0) throw new Error("negative, by " + (source.id ?? source)); }
  shouldSendProtocolMessages(connection, { request }) { return !new URL(request.url).searchParams.has("bare"); }
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, what TEXT)\`; }
  note(what) { this.sql\`INSERT INTO notes (what) VALUES (\${JSON.stringify(what)})\`; }
  notes() { return this.sql\`SELECT what FROM notes ORDER BY id\`.map(({ what }) => JSON.parse(what)); }
  async onRequest(request) { const before = current(); await new Promise((resolve) => setTimeout(resolve, 5)); return Response.json([before, current()]); }
  onConnect(connection) { this.note(["onConnect", ...current()]); connection.send(connection.server); }
  onMessage() { this.note(["onMessage", ...current()]); }
  onStateChanged() { this.note(["onStateChanged", ...current()]); }
  planned(payload) { this.note([payload, ...current()]); }
  set(n) { this.setState({ n }); }
  elsewhere() { return Promise.resolve().then(current); }
  @callable() who() { return current(); }
  @callable() lock(isReadonly = true) { const { connection } = getCurrentAgent(); this.setConnectionReadonly(connection, isReadonly); return this.isConnectionReadonly(connection); }
  @callable() bump() { this.setState({ n: this.state.n + 1 }); }
  @callable() protocols() { return [...this.getConnections()].map((one) => this.isConnectionProtocolEnabled(one)); }
  @unstable_callable() older() { return "older"; }
  marked() { return "marked"; }
  @callable({ streaming: true }) stream(stream) {
    const said = [stream.isClosed, stream.send(1), stream.end(), stream.isClosed, stream.send(2), stream.end(3), stream.error("late")];
    this.note(said);
  }
  @callable({ streaming: true }) refuses(stream) { stream.error("not today"); }
  held = Promise.withResolvers();
  letGo() { this.held.resolve(); }
  /** A turn that continues after a wait sees the changes that another turn made meanwhile. */
  async add(n, isHeld) {
    await (isHeld ? this.held.promise : null);
    this.setState({ ...this.state, n: this.state.n + n, ["by" + n]: true });
    await this.ctx.storage.put("sum", ((await this.ctx.storage.get("sum")) ?? 0) + n);
    return this.state;
  }
  everything() { return [this.state, this.ctx.storage.kv.get("sum")]; }
  async plans() {
    const at = (seconds) => new Date(Date.now() + seconds * 1_000);
    const dates = [await this.schedule(at(100), "note", 1, { idempotent: true }), await this.schedule(at(200), "note", 1, { idempotent: true })];
    const delays = [await this.schedule(100, "note", 2, { idempotent: true }), await this.schedule(200, "note", 2, { idempotent: true })];
    const intervals = [await this.scheduleEvery(100, "note", 3), await this.scheduleEvery(100, "note", 3), await this.scheduleEvery(200, "note", 3)];
    const crons = [await this.schedule("0 0 * * *", "note", 4), await this.schedule("0 0 * * *", "note", 4), await this.schedule("0 0 * * *", "note", 4, { idempotent: false })];
    const ids = [dates, delays, intervals, crons].map((some) => new Set(some.map(({ id }) => id)).size);
    const [{ id }] = dates;
    const found = [this.getSchedule(id), await this.getScheduleById(id), (await this.listSchedules({ id }))[0], this.getSchedules({ id })[0]];
    return [ids, new Set(found.map((one) => JSON.stringify(one))).size, found[0].type, this.getSchedule("none"), (await this.listSchedules()).length];
  }
  async overlaps(seconds) { this.runs = 0; this.most = 0; this.ended = 0; return this.scheduleEvery(seconds, "overlapping"); }
  async overlapping() { this.runs += 1; this.most = Math.max(this.most, this.runs); await new Promise((resolve) => setTimeout(resolve, 120)); this.runs -= 1; this.ended += 1; if (this.ended === 1) throw new Error("goes on"); }
  overlapped() { return [this.most, this.ended]; }
  async queues() {
    const first = await this.queue("waits", { kind: "a", ms: 60_000 });
    for (const kind of ["a", "b", "b"]) await this.queue("waits", { kind });
    await this.queue("planned", { kind: "b" });
    const found = [(await this.getQueue(first)).payload.kind, await this.getQueue("none"), (await this.getQueue()).length, (await this.getQueues("kind", "b")).length];
    const removed = [await this.dequeue(first), await this.dequeue(first), await this.dequeueAllByCallback("planned"), await this.dequeueAll(), (await this.getQueue()).length];
    return [found, removed];
  }
  async waits({ ms = 0 }) { await new Promise((resolve) => setTimeout(resolve, ms)); }
  async keeps() { return this.keepAliveWhile(async () => { await new Promise((resolve) => setTimeout(resolve, 20)); return "kept"; }); }
  async keepsNot() { return this.keepAliveWhile(async () => { throw new Error("not kept"); }); }
  tries(times, options) { let count = 0; return this.retry((attempt) => { count = attempt; if (attempt < times) throw new Error("try " + attempt); return count; }, { baseDelayMs: 1, maxDelayMs: 2, ...options }); }
  stopsEarly() { return this.retry((attempt) => { throw new Error("try " + attempt); }, { shouldRetry: (error, next) => error.message === "try 1" && next === 2, baseDelayMs: 1 }); }
  async keyValue() {
    const { kv, sql } = this.ctx.storage;
    kv.put("a", { deep: new Date(0) }); kv.put("b", 2);
    const listed = [...kv.list({ prefix: "b" })];
    const got = [kv.get("a").deep.getTime(), await this.ctx.storage.get("b"), kv.delete("b"), kv.delete("b"), kv.get("b")];
    const rows = [sql.exec("SELECT 1 AS one").one(), [...sql.exec("SELECT 1, 2").raw()], sql.exec("SELECT 1 AS a UNION SELECT 2").next().value];
    const wrong = [0, 2].map((n) => { try { return sql.exec("SELECT * FROM json_each(?)", JSON.stringify(Array(n).fill(0))).one(); } catch (error) { return error.message; } });
    await this.ctx.storage.deleteAll(); await this.ctx.storage.sync();
    return [listed, got, rows, wrong, sql.databaseSize > 0, kv.get("a")];
  }
  async ids() {
    const { Agents } = this.env;
    const id = Agents.idFromName("one");
    return [id.name, String(id), id.equals(Agents.idFromName("one")), id.equals(Agents.idFromName("two")), await Agents.get(id).name, await Agents.get(id).elsewhere(), await Agents.getByName("two").elsewhere()];
  }
}
callable({ description: "of a class without decorators" })(Agents.prototype.marked);

export class Hidden extends Agent<any, any> {
  static options = { sendIdentityOnConnect: false, retry: { maxAttempts: 5, baseDelayMs: 1, maxDelayMs: 2 } };
  initialState = {};
  tried = 0;
  async fetch(request) { return new URL(request.url).pathname === "/early" ? new Response("early") : super.fetch(request); }
  onRequest() { return new Response("late"); }
  flaky() { this.tried += 1; if (this.tried < 5) throw new Error("try " + this.tried); }
  async plan(how) { this.tried = 0; if (how === "queue") await this.queue("flaky"); if (how === "schedule") await this.schedule(0, "flaky"); if (how === "retry") await this.retry(() => this.flaky()); return (await this.listSchedules())[0]?.retry; }
  count() { return this.tried; }
}
export default {
  async fetch(request, env) {
    const prefix = new URL(request.url).searchParams.get("prefix") ?? undefined;
    return (await routeAgentRequest(request, env, { ...(prefix && { prefix }), cors: { "Access-Control-Allow-Origin": "https://only.example" } })) ?? new Response("none", { status: 404 });
  },
};
`;

const CLASSES = ["Plain", "Older", "Agents", "Hidden"];

describe("an app's process: the class Agent", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  let key = "";
  let count = 0;
  before(async () => {
    host = await MemoryHost.start({
      code: CODE,
      agents: CLASSES.map((name) => ({ binding: name, className: name })),
    });
  });
  after(() => host.stop());
  beforeEach(() => {
    count += 1;
    key = `Agents/${count}`;
    host.actions.length = 0;
    frames = 0;
  });

  const failure = (turn: Promise<unknown>) =>
    turn.then(
      () => "nothing",
      ({ message }: Error) => message,
    );
  const socket: ProcessConnection = { id: "me", number: 1, gateway: "g" };
  let frames = 0;
  async function call(method: string, ...args: unknown[]) {
    frames += 1;
    const frame = JSON.stringify({ type: "rpc", id: method, method, args });
    await host.turn(key, { type: "frames", connection: socket, first: frames, frames: [frame] });
    const isMine = (action: ProcessAction) =>
      "frame" in action && String(action.frame).includes(`"id":"${method}"`);
    await until("it is answered", () => host.actions.some(isMine));
    const answers = host.actions.filter(isMine);
    host.actions.length = 0;
    return answers.map((action) => JSON.parse(String("frame" in action && action.frame)));
  }
  const types = () =>
    host.actions.map((action) => {
      const text = "frame" in action ? String(action.frame) : "";
      return text.startsWith("{") ? JSON.parse(text).type : text;
    });

  it("answers 404, has no state and accepts sockets if its class says nothing else", async () => {
    key = `Plain/${count}`;
    const answer = await host.request(key, "/");
    expect([answer.status, await answer.text()]).to.deep.equal([404, "Not implemented"]);
    await host.connect(key, socket);
    expect(types()).to.deep.equal(["cf_agent_identity", "cf_agent_mcp_servers"]);
    const [state] = await call("setState", {});
    expect(state.error).to.equal("Method setState is not callable");
  });

  it("calls onStateUpdate, the older name of onStateChanged", async () => {
    key = `Older/${count}`;
    await host.connect(key, socket);
    await host.invoke(key, "setState", { a: 1 });
    const frame = JSON.stringify({ type: "cf_agent_state", state: { a: 2 } });
    await host.turn(key, { type: "frames", connection: socket, first: 1, frames: [frame] });
    const seen = async () => (await host.invoke(key, "seen")) as unknown[];
    await until("it heard of both", async () => (await seen()).length === 2);
    expect(await seen()).to.deep.equal([
      [{ a: 1 }, "server"],
      [{ a: 2 }, "me"],
    ]);
  });

  it("keeps its state if validateStateChange refuses a change by its own code", async () => {
    expect(await failure(host.invoke(key, "set", -1))).to.equal("negative, by server");
    expect(await host.invoke(key, "everything")).to.deep.equal([{ n: 0 }, undefined]);
  });

  it("loses nothing that another turn changes while one waits", async () => {
    const first = host.invoke(key, "add", 1, true);
    expect(await host.invoke(key, "add", 2, false)).to.deep.equal({ n: 2, by2: true });
    await host.invoke(key, "letGo");
    expect(await first).to.deep.equal({ n: 3, by1: true, by2: true });
    host.close(key);
    expect(await host.invoke(key, "everything")).to.deep.equal([{ n: 3, by1: true, by2: true }, 3]);
  });

  it("getCurrentAgent() knows agent, connection and request, wherever its code runs", async () => {
    const name = String(count);
    const answer = await host.request(key, "/asked");
    const asked = [name, null, "/asked"];
    expect(await answer.json()).to.deep.equal([asked, asked]);
    await host.connect(key, socket, "/joined");
    const [who] = await call("who");
    expect(who.result).to.deep.equal([name, "me", null]);
    await call("bump");
    const frame = "a message";
    await host.turn(key, { type: "frames", connection: socket, first: 3, frames: [frame] });
    await host.invoke(key, "schedule", 0, "planned", "schedule");
    await host.invoke(key, "queue", "planned", "queue");
    await host.invoke(key, "submit", "planned", "submission");
    const notes = async () => (await host.invoke(key, "notes")) as unknown[][];
    await until("all came", async () => (await notes()).length === 6);
    expect(
      Object.fromEntries((await notes()).map(([what, ...known]) => [what, known])),
    ).to.deep.equal({
      onConnect: [name, "me", "/joined"],
      onStateChanged: [name, "me", null],
      onMessage: [name, "me", null],
      schedule: [name, null, null],
      queue: [name, null, null],
      submission: [name, null, null],
    });
    expect(await host.invoke(key, "elsewhere")).to.deep.equal([name, undefined, undefined]);
  });

  it("makes a connection read-only, and takes that back", async () => {
    await host.connect(key, socket);
    const [locked] = await call("lock");
    expect(locked.result).to.equal(true);
    const [refused] = await call("bump");
    expect(refused).to.include({ success: false, error: "Connection is readonly" });
    host.close(key);
    const [still] = await call("bump");
    expect(still.error).to.equal("Connection is readonly");
    const [unlocked] = await call("lock", false);
    expect(unlocked.result).to.equal(false);
    const [taken] = await call("bump");
    expect(taken.success).to.equal(true);
  });

  it("distinguishes connections with and without protocol messages, and tells them their agent", async () => {
    await host.connect(key, socket);
    expect(types().at(-1)).to.equal(String(count));
    await host.connect(key, { ...socket, number: 2, id: "bare" }, "/?bare");
    const [protocols] = await call("protocols");
    expect(protocols.result).to.deep.equal([true, false]);
  });

  it("lets clients call methods that are marked without a decorator or by the older name", async () => {
    await host.connect(key, socket);
    const results = [await call("marked"), await call("older")];
    expect(results.map(([answer]) => answer.result)).to.deep.equal(["marked", "older"]);
  });

  it("a stream is over when it has ended or was refused, and sends nothing more", async () => {
    await host.connect(key, socket);
    const answers = await call("stream");
    expect(answers.map(({ done, result }) => [done, result])).to.deep.equal([
      [false, 1],
      [true, undefined],
    ]);
    const notes = (await host.invoke(key, "notes")) as unknown[];
    expect(notes.at(-1)).to.deep.equal([false, true, true, true, false, false, false]);
    const [refused] = await call("refuses");
    expect(refused).to.deep.equal({
      type: "rpc",
      id: "refuses",
      success: false,
      error: "not today",
    });
  });

  it("does not double a schedule that is planned again, and finds it by its id", async () => {
    const plans = await host.invoke(key, "plans");
    expect(plans).to.deep.equal([[1, 1, 2, 2], 1, "scheduled", undefined, 6]);
    host.close(key);
    expect(((await host.invoke(key, "plans")) as unknown[]).at(-1)).to.equal(7);
  });

  it("an interval goes on after a failure, and its calls never overlap", async () => {
    const { id } = (await host.invoke(key, "overlaps", 0.05)) as { id: string };
    const overlapped = async () => (await host.invoke(key, "overlapped")) as number[];
    await until("it has run three times", async () => Number((await overlapped())[1]) >= 3);
    expect((await overlapped())[0]).to.equal(1);
    expect(await host.invoke(key, "cancelSchedule", id)).to.equal(true);
  });

  it("finds and removes queued items by id or payload", async () => {
    expect(await host.invoke(key, "queues")).to.deep.equal([
      ["a", undefined, 5, 3],
      [true, false, 1, 3, 0],
    ]);
  });

  it("keepAliveWhile() returns the result of its work, and keeps the agent no longer", async () => {
    expect(await host.invoke(key, "keeps")).to.equal("kept");
    expect(await failure(host.invoke(key, "keepsNot"))).to.equal("not kept");
    await until("it need not stay", () => host.idle.get(key));
  });

  it("retry() tries as often as it is set, and stops when shouldRetry says so", async () => {
    expect(await host.invoke(key, "tries", 5, { maxAttempts: 5 })).to.equal(5);
    expect(await failure(host.invoke(key, "tries", 5, { maxAttempts: 4 }))).to.equal("try 4");
    expect(await failure(host.invoke(key, "stopsEarly"))).to.equal("try 2");
    expect(await failure(host.invoke(key, "tries", 1, { maxAttempts: 0 }))).to.match(
      /maxAttempts is 0/,
    );
  });

  it("a class says how often all its work is tried", async () => {
    key = `Hidden/${count}`;
    for (const how of ["retry", "queue", "schedule"]) {
      await host.invoke(key, "plan", how);
      await until(`${how} succeeded`, async () => (await host.invoke(key, "count")) === 5);
    }
  });

  it("a class keeps an agent's name from its clients", async () => {
    key = `Hidden/${count}`;
    await host.connect(key, socket);
    expect(types()).to.deep.equal(["cf_agent_state", "cf_agent_mcp_servers"]);
  });

  it("a class may answer requests before onRequest does, by fetch()", async () => {
    key = `Hidden/${count}`;
    for (const [path, text] of [
      ["/early", "early"],
      ["/else", "late"],
    ] as const) {
      expect(await (await host.request(key, path)).text()).to.equal(text);
    }
  });

  it("has keys and values at once, and rows in every way", async () => {
    expect(await host.invoke(key, "keyValue")).to.deep.equal([
      [["b", 2]],
      [0, 2, true, false, undefined],
      [{ one: 1 }, [[1, 2]], { a: 1 }],
      ["Expected exactly one row, found none", "Expected exactly one row, found several"],
      true,
      undefined,
    ]);
  });

  it("is found by id and by name", async () => {
    expect(await host.invoke(key, "ids")).to.deep.equal([
      "one",
      "one",
      true,
      false,
      "one",
      ["one", undefined, undefined],
      ["two", undefined, undefined],
    ]);
  });

  it("is reached below another prefix, with the given headers for other origins", async () => {
    const routed = await host.entry("/api/v1/agents/x?prefix=api/v1");
    expect(routed.status).to.equal(200);
    expect(routed.headers.get("access-control-allow-origin")).to.equal("https://only.example");
    expect((await host.entry("/agents/agents/x?prefix=api/v1")).status).to.equal(404);
  });
});
