import { expect } from "chai";
import type { ProcessAction, ProcessConnection } from "../../../schemas/apps/app-process.ts";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost, type RefusedTurn, wireRequest } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent, callable, getAgentByName, routeAgentRequest } from "trunkline/agents";
export class ChatRoom extends Agent<any, any> {
  initialState = { count: 0 };
  changes: any[] = [];
  getConnectionTags(connection, { request }) { return new URL(request.url).searchParams.getAll("tag"); }
  shouldConnectionBeReadonly(connection, { request }) { return new URL(request.url).searchParams.has("readonly"); }
  shouldSendProtocolMessages(connection, { request }) { return !new URL(request.url).searchParams.has("bare"); }
  validateStateChange(state) { if (state.count < 0) throw new Error("a secret reason"); }
  onStateChanged(state, source) { this.changes.push([state.count, source === "server" ? source : source.id]); if (state.count === 13) throw new Error("unlucky"); }
  onConnect(connection, { request }) { connection.setState({ at: new URL(request.url).pathname }); connection.send("welcome " + connection.id); }
  onMessage(connection, message) {
    if (message === "boom") throw new Error("bad message");
    if (message === "later") return this.ctx.waitUntil(new Promise((resolve) => setTimeout(resolve, 20)).then(() => this.broadcast("at last")));
    if (message === "close") return connection.close(4001, "as you wish");
    if (message === "misuse") {
      for (const [code, reason] of [[999], [1004], [1005], [1006], [1015], [2000], [2999], [5000], ["1000"], [1000, "é".repeat(62)]]) {
        try { connection.close(code, reason); connection.send("closed with " + code); } catch (error) { connection.send(error.name + ": " + error.message); }
      }
      return;
    }
    this.broadcast(typeof message === "string" ? connection.id + ": " + message : new Uint8Array(message), [connection.id]);
  }
  onClose(connection, code, reason, wasClean) { this.sql\`CREATE TABLE IF NOT EXISTS closed (v)\`; this.sql\`INSERT INTO closed VALUES (\${JSON.stringify([connection.id, connection.state, code, reason, wasClean])})\`; }
  onError(...args) { this.sql\`CREATE TABLE IF NOT EXISTS errors (v)\`; this.sql\`INSERT INTO errors VALUES (\${JSON.stringify(args.map((arg) => arg.message ?? arg.id))})\`; }
  rows(table) { try { return this.sql\`SELECT v FROM \${table}\` } catch { return this.ctx.storage.sql.exec("SELECT v FROM " + table).toArray().map(({ v }) => JSON.parse(v)); } }
  seen() { return this.changes; }
  tagged(tag) { return this.getConnections(tag).map(({ id, tags, state, uri }) => ({ id, tags, state, uri })); }
  one(id) { return this.getConnection(id)?.id; }
  set(state) { this.setState(state); }
  secret() { return 1; }
  @callable() add(a, b) { return a + b; }
  held = Promise.withResolvers();
  letGo() { this.held.resolve(); }
  @callable() async later(value) { await this.held.promise; return value; }
  @callable() bump() { this.setState({ count: this.state.count + 1 }); return this.state; }
  @callable() fails() { throw new Error("for a reason"); }
  @callable() nothing() {}
  @callable({ streaming: true, description: "counts" }) async count(stream, n) { for (let i = 1; i <= n; i += 1) { stream.send(i); await Promise.resolve(); } stream.end("done"); }
  @callable({ streaming: true }) async breaks(stream) { stream.send(1); throw new Error("broken off"); }
  methods() { return [...this.getCallableMethods().keys()].sort(); }
}
export default {
  fetch: async (request, env) => {
    const url = new URL(request.url);
    if (url.pathname === "/direct") return (await getAgentByName(env.Room, "direct")).fetch(request);
    return (await routeAgentRequest(request, env, {
      props: { p: 1 },
      onBeforeConnect: (request) => new URL(request.url).searchParams.has("no") ? new Response("no", { status: 401 }) : undefined,
    })) ?? new Response("none", { status: 404 });
  },
};
`;

const IDENTITY = '{"type":"cf_agent_identity","name":"r","agent":"chat-room","stateFollows":true}';
const SERVERS =
  '{"type":"cf_agent_mcp_servers","mcp":{"servers":{},"tools":[],"prompts":[],"resources":[]}}';
const stateFrame = (count: number) => `{"type":"cf_agent_state","state":{"count":${count}}}`;

describe("an app's process: sockets", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  let room = "";
  let rooms = 0;
  const options = { code: CODE, agents: [{ binding: "Room", className: "ChatRoom" }] };
  before(async () => {
    host = await MemoryHost.start(options);
  });
  after(() => host.stop());
  beforeEach(() => {
    rooms += 1;
    room = `ChatRoom/${"r".repeat(rooms)}`;
    host.actions.length = 0;
  });

  const socket = (number: number, id = `c${number}`, gateway = "g1"): ProcessConnection => ({
    id,
    number,
    gateway,
  });
  const sent = new Map<string, number>();
  const say = (connection: ProcessConnection, ...frames: (string | object)[]) => {
    const key = `${room} ${connection.number}`;
    const first = (sent.get(key) ?? 0) + 1;
    sent.set(key, first + frames.length - 1);
    return host.turn(room, {
      type: "frames",
      connection,
      first,
      frames: frames.map((frame) =>
        typeof frame === "string" || frame instanceof Uint8Array ? frame : JSON.stringify(frame),
      ),
    });
  };
  /** Returns the frames that one socket received, in order. */
  const got = (number: number, actions: ProcessAction[] = host.actions) =>
    actions
      .filter(({ to }) => to.includes(number))
      .map((action) => ("frame" in action ? action.frame : action.close));
  const parsed = (number: number) =>
    got(number).map((frame) => JSON.parse(String(frame)) as object);

  it("an upgrade is accepted for the agent that its path names", async () => {
    const request = await wireRequest("/agents/room/x?_pk=1&tag=a", {
      headers: { upgrade: "websocket" },
    });
    const result = await host.entryTurn(request, true);
    expect(result).to.deep.include({ type: "accept", className: "ChatRoom", name: "x" });
    expect(result).to.have.property("props");
    const direct = await host.entryTurn(await wireRequest("/direct"), true);
    expect(direct).to.deep.include({ type: "accept", className: "ChatRoom", name: "direct" });
    const refused = await host.entryTurn(await wireRequest("/agents/room/x?no"), true);
    expect(refused).to.have.nested.property("answer.status", 401);
    const nowhere = await host.entryTurn(await wireRequest("/agents/nobody/x"), true);
    expect(nowhere).to.have.nested.property("answer.status", 400);
  });

  it("a client is greeted by identity, state and servers, then by the app", async () => {
    room = "ChatRoom/r";
    await host.connect(room, socket(1));
    expect(got(1)).to.deep.equal([IDENTITY, stateFrame(0), SERVERS, "welcome c1"]);
    expect(host.actions[1]).to.include({ isState: true });
    await host.connect(room, socket(1));
    expect(got(1)).to.have.length(4);
  });

  it("a connection without protocol messages gets only what code sends", async () => {
    await host.connect(room, socket(1), "/?bare");
    await host.invoke(room, "set", { count: 2 });
    expect(got(1)).to.deep.equal(["welcome c1"]);
  });

  it("a state goes to all but its source, and onStateChanged hears from whom", async () => {
    for (const number of [1, 2, 3]) await host.connect(room, socket(number));
    host.actions.length = 0;
    await say(socket(2), { type: "cf_agent_state", state: { count: 5 } });
    expect([1, 2, 3].map((number) => got(number))).to.deep.equal([
      [stateFrame(5)],
      [],
      [stateFrame(5)],
    ]);
    await host.invoke(room, "set", { count: 6 });
    expect([1, 2, 3].map((number) => got(number).at(-1))).to.deep.equal(
      Array(3).fill(stateFrame(6)),
    );
    expect(await host.invoke(room, "seen")).to.deep.equal([
      [5, "c2"],
      [6, "server"],
    ]);
    await host.invoke(room, "set", { count: 13 });
    expect(await host.invoke(room, "rows", "errors")).to.deep.equal([["unlucky"]]);
  });

  it("a state that is refused says so to its source alone, and not why", async () => {
    for (const number of [1, 2]) await host.connect(room, socket(number));
    host.actions.length = 0;
    await say(socket(1), { type: "cf_agent_state", state: { count: -1 } });
    expect(got(1)).to.deep.equal([
      '{"type":"cf_agent_state_error","error":"State update rejected"}',
    ]);
    expect(got(2)).to.deep.equal([]);
  });

  it("a read-only client changes no state, by a frame or by a call", async () => {
    await host.connect(room, socket(1), "/?readonly");
    host.actions.length = 0;
    await say(socket(1), { type: "cf_agent_state", state: { count: 1 } });
    await say(socket(1), { type: "rpc", id: "1", method: "bump", args: [] });
    await say(socket(1), { type: "rpc", id: "2", method: "add", args: [1, 2] });
    expect(parsed(1)).to.deep.equal([
      { type: "cf_agent_state_error", error: "Connection is readonly" },
      { type: "rpc", id: "1", success: false, error: "Connection is readonly" },
      { type: "rpc", id: "2", success: true, done: true, result: 3 },
    ]);
  });

  it("calls are answered by their ids: results, errors, refused methods", async () => {
    await host.connect(room, socket(1));
    host.actions.length = 0;
    const call = (id: string, method: string, ...args: unknown[]) => ({
      type: "rpc",
      id,
      method,
      args,
    });
    const said = say(
      socket(1),
      call("slow", "later", 60),
      call("a", "add", 1, 2),
      call("b", "fails"),
      call("c", "missing"),
      call("d", "secret"),
      call("e", "nothing"),
      call("f", "setState", {}),
      call("g", "constructor"),
    );
    await until("the others are answered", () => got(1).length === 7);
    await host.invoke(room, "letGo");
    await said;
    const answers = parsed(1) as { id: string; error?: string; success: boolean }[];
    expect(answers.at(-1)).to.deep.equal({
      type: "rpc",
      id: "slow",
      success: true,
      done: true,
      result: 60,
    });
    const errors = Object.fromEntries(
      answers.filter(({ success }) => !success).map(({ id, error }) => [id, error]),
    );
    expect(errors).to.deep.equal({
      b: "for a reason",
      c: "Method missing does not exist",
      d: "Method secret is not callable",
      f: "Method setState is not callable",
      g: "Method constructor does not exist",
    });
    expect(await host.invoke(room, "methods")).to.deep.equal([
      "add",
      "breaks",
      "bump",
      "count",
      "fails",
      "later",
      "nothing",
    ]);
  });

  it("streams come in parts, and end or break off", async () => {
    await host.connect(room, socket(1));
    host.actions.length = 0;
    await say(
      socket(1),
      { type: "rpc", id: "s", method: "count", args: [2] },
      { type: "rpc", id: "t", method: "breaks", args: [] },
    );
    await until("both have ended", () => got(1).length === 5);
    const of = (id: string) => parsed(1).filter((frame) => (frame as { id: string }).id === id);
    expect(of("s")).to.deep.equal([
      { type: "rpc", id: "s", success: true, done: false, result: 1 },
      { type: "rpc", id: "s", success: true, done: false, result: 2 },
      { type: "rpc", id: "s", success: true, done: true, result: "done" },
    ]);
    expect(of("t").at(-1)).to.deep.equal({
      type: "rpc",
      id: "t",
      success: false,
      error: "broken off",
    });
  });

  it("everything else goes to onMessage: text, bytes, broken JSON, frames of other kinds", async () => {
    for (const number of [1, 2]) await host.connect(room, socket(number));
    host.actions.length = 0;
    const others = [
      "hello",
      "{broken",
      '{"type":"cf_agent_other"}',
      '{"type":"rpc","id":1,"method":"add","args":[]}',
    ];
    await say(socket(1), ...others, new Uint8Array([1, 2, 3]));
    expect(got(1)).to.deep.equal([]);
    expect(got(2).slice(0, -1)).to.deep.equal(others.map((text) => `c1: ${text}`));
    expect([...(got(2).at(-1) as Uint8Array)]).to.deep.equal([1, 2, 3]);
    await say(socket(1), "boom");
    expect(await host.invoke(room, "rows", "errors")).to.deep.equal([["c1", "bad message"]]);
  });

  it("a broadcast is one action for each gateway", async () => {
    await host.connect(room, socket(1, "a", "g1"));
    await host.connect(room, socket(2, "b", "g1"));
    await host.connect(room, socket(1, "c", "g2"));
    host.actions.length = 0;
    await host.invoke(room, "broadcast", "all");
    expect(host.actions).to.deep.equal([
      { gateway: "g1", to: [1, 2], frame: "all" },
      { gateway: "g2", to: [1], frame: "all" },
    ]);
  });

  it("tags and ids find connections; an id that several have is an error", async () => {
    await host.connect(room, socket(1, "same"), "/?tag=x&tag=y");
    await host.connect(room, socket(2, "other"), "/?tag=y");
    expect(await host.invoke(room, "tagged", "x")).to.deep.equal([
      {
        id: "same",
        tags: ["same", "x", "y"],
        state: { at: "/" },
        uri: "http://app.example/?tag=x&tag=y",
      },
    ]);
    expect(await host.invoke(room, "tagged", "y")).to.have.length(2);
    expect(await host.invoke(room, "one", "same")).to.equal("same");
    await host.connect(room, socket(3, "same"));
    const outcome = await host.invoke(room, "one", "same").catch(({ message }: Error) => message);
    expect(outcome).to.match(/several have this id/);
    const tags = Array.from({ length: 10 }, (_, index) => `tag=${index}`).join("&");
    const tooMany = await host
      .connect(room, socket(4), `/?${tags}`)
      .catch(({ message }: Error) => message);
    expect(tooMany).to.match(/10 tags, expected at most 9/);
  });

  it("a socket is closed with codes and reasons that can be sent, and with no others", async () => {
    await host.connect(room, socket(1));
    host.actions.length = 0;
    await say(socket(1), "misuse");
    const told = got(1).map(String);
    expect(told).to.have.length(10);
    for (const text of told.slice(0, -1)) expect(text).to.match(/^RangeError: .*the code is/);
    expect(told.at(-1)).to.match(/^RangeError: .*longer than 123 bytes/);
  });

  it("closes: by code, by the client, and without a word", async () => {
    for (const number of [1, 2, 3]) await host.connect(room, socket(number), `/at${number}`);
    host.actions.length = 0;
    await say(socket(1), "close");
    expect(got(1)).to.deep.equal([{ code: 4001, reason: "as you wish" }]);
    const goodbye = {
      type: "disconnect",
      connection: socket(1),
      close: { code: 4001, reason: "as you wish" },
      wasClean: true,
    } as const;
    await host.turn(room, goodbye);
    await host.turn(room, goodbye);
    host.gone(room, "g1", [2]);
    host.gone(room, "elsewhere", "all");
    await until(
      "the second is gone",
      async () => ((await host.invoke(room, "tagged")) as unknown[]).length === 1,
    );
    expect(await host.invoke(room, "rows", "closed")).to.deep.equal([
      ["c1", { at: "/at1" }, 4001, "as you wish", true],
      ["c2", { at: "/at2" }, 1006, "", false],
    ]);
    host.gone(room, "g1", "all");
    await until(
      "all are gone",
      async () => ((await host.invoke(room, "tagged")) as unknown[]).length === 0,
    );
  });

  it("sockets that are given up are closed, should they be there after all, and frames of theirs are refused", async () => {
    for (const number of [1, 2]) await host.connect(room, socket(number), "/");
    await host.turn(room, { type: "frames", connection: socket(1), first: 1, frames: [] });
    host.actions.length = 0;
    host.gone(room, "g1", [1]);
    host.gone(room, "g1", "all");
    const close = { code: 1012, reason: "The agent could not reach this socket" };
    await until("they are closed", () => host.actions.some((action) => "close" in action));
    expect(host.actions).to.deep.include({ gateway: "g1", to: [2], close });
    for (const frames of [["x"], []]) {
      const told = host.turn(room, { type: "frames", connection: socket(2), first: 1, frames });
      expect(await told.catch((error: RefusedTurn) => error.error)).to.include({
        refusal: "conflict",
      });
    }
  });

  it("sockets, their states and marks outlive the process: no frame is taken twice", async () => {
    const own = await MemoryHost.start(options);
    let next: MemoryHost | undefined;
    try {
      const connection = socket(7, "stays");
      await own.connect("ChatRoom/h", connection, "/place?readonly=&tag=t");
      const bump = JSON.stringify({ type: "rpc", id: "x", method: "add", args: [1, 1] });
      await own.turn("ChatRoom/h", { type: "frames", connection, first: 1, frames: [bump] });
      await own.turn("ChatRoom/h", { type: "frames", connection, first: 2, frames: ["boom"] });
      next = await own.restart();
      await next.turn("ChatRoom/h", {
        type: "frames",
        connection,
        first: 2,
        frames: ["boom", "boom"],
      });
      await next.turn("ChatRoom/h", {
        type: "frames",
        connection,
        first: 2,
        frames: ["boom", "boom", "boom"],
      });
      expect(await next.invoke("ChatRoom/h", "rows", "errors")).to.have.length(3);
      expect(await next.invoke("ChatRoom/h", "tagged", "t")).to.deep.equal([
        {
          id: "stays",
          tags: ["stays", "t"],
          state: { at: "/place" },
          uri: "http://app.example/place?readonly=&tag=t",
        },
      ]);
      next.actions.length = 0;
      await next.invoke("ChatRoom/h", "set", { count: 3 });
      expect(got(7, next.actions)).to.deep.equal([stateFrame(3)]);
    } finally {
      await own.stop();
      await next?.stop();
    }
  });

  it("an agent that opens with sockets asks each of their gateways once, because it may have been killed", async () => {
    const own = await MemoryHost.start(options);
    let next: MemoryHost | undefined;
    try {
      await own.connect("ChatRoom/k", socket(1, "a", "g1"), "/");
      await own.connect("ChatRoom/k", socket(2, "b", "g1"), "/");
      await own.connect("ChatRoom/k", socket(3, "c", "g2"), "/");
      next = await own.restart();
      expect(await next.invoke("ChatRoom/k", "seen")).to.deep.equal([]);
      const { actions } = next;
      await until("each gateway has its action", () => actions.length === 2);
      expect(actions).to.deep.equal([
        { gateway: "g1", to: [], frame: "" },
        { gateway: "g2", to: [], frame: "" },
      ]);
    } finally {
      await own.stop();
      await next?.stop();
    }
  });

  it("the end of background work is reported after its last frames", async () => {
    const connection = socket(1);
    await host.connect(room, connection, "/");
    const { idle } = host;
    const framesAtIdle: unknown[][] = [];
    idle.set = function (key, isIdle) {
      if (isIdle) framesAtIdle.push(got(1));
      return Map.prototype.set.call(this, key, isIdle);
    };
    try {
      await say(connection, "later");
      await until("it is idle", () => idle.get(room) === true);
      expect(framesAtIdle.at(-1)).to.include("at last");
    } finally {
      delete (idle as Partial<typeof idle>).set;
    }
  });

  it("destroy() closes every socket", async () => {
    await host.connect(room, socket(1));
    host.actions.length = 0;
    await host.invoke(room, "destroy");
    expect(got(1)).to.deep.equal([{ code: 1001, reason: "The agent was destroyed" }]);
    expect(await host.invoke(room, "tagged")).to.deep.equal([]);
  });
});
