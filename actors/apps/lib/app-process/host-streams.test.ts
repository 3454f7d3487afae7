import { setImmediate as turnOfLoop } from "node:timers/promises";
import { deserialize, serialize } from "node:v8";
import { expect } from "chai";
import { agent, appEntry } from "../../../../schemas/apps/agent.ts";
import {
  type AnswerStream,
  AppAnswer,
  type AppRequest,
} from "../../../../schemas/apps/app-exchange.ts";
import type { StreamPart, ToProcess } from "../../../../schemas/apps/app-process.ts";
import {
  APP_HELD_BYTES_MAX,
  APP_STREAM_PART_BYTES_MAX,
  APP_STREAM_UNREAD_MS,
  APP_STREAM_WAIT_MS,
  APP_STREAMS_MAX,
} from "../../../../schemas/apps/limits.ts";
import { parseJson } from "../../../../schemas/parse-json.ts";
import { addressOf, callSubject } from "../../../../schemas/subjects.ts";
import {
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../../scripts/testing/agent-world.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { readAnswerStream } from "../app-bodies/read-answer-stream.ts";
import { HeldBytes } from "./held-bytes.ts";
import { HostStreams } from "./host-streams.ts";

/** An app whose method `say` writes further parts of its responses, and which reports how they ended. */
const CODE = `
import { Agent, getCurrentAgent } from "trunkline/agents";

const bytes = (text) => new TextEncoder().encode(text);

export class Teller extends Agent {
  initialState = { cancelled: 0, pulled: 0, slow: 0 };
  told = [];
  waiting = [];
  onStart() {
    this.sql\`CREATE TABLE IF NOT EXISTS said (text TEXT)\`;
  }
  say(text) {
    this.told.push(text);
    for (const wake of this.waiting.splice(0)) wake();
  }
  stateNow() {
    return this.state;
  }
  rows() {
    return this.sql\`SELECT text FROM said\`.map(({ text }) => text);
  }
  async onRequest(request) {
    const { pathname, searchParams } = new URL(request.url);
    const type = searchParams.get("type") ?? "text/event-stream";
    const kind = pathname.split("/").at(-1);
    if (searchParams.has("write")) this.sql\`INSERT INTO said VALUES ('at once')\`;
    if (kind === "slow") {
      this.setState({ ...this.state, slow: this.state.slow + 1 });
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return new Response(new ReadableStream(this.lines()), { headers: { "content-type": type } });
    }
    if (kind === "whole") return new Response("all of it", { headers: { "content-type": type } });
    return new Response(new ReadableStream(this[kind]()), { headers: { "content-type": type } });
  }
  lines() {
    return {
      pull: async (controller) => {
        while (this.told.length === 0) await new Promise((resolve) => this.waiting.push(resolve));
        const text = this.told.shift();
        if (text === "end") return controller.close();
        if (text === "throw") throw new Error("inside of the app");
        const { agent } = getCurrentAgent();
        agent.sql\`INSERT INTO said VALUES (\${text})\`;
        controller.enqueue(bytes(text));
      },
      cancel: () => this.setState({ ...this.state, cancelled: this.state.cancelled + 1 }),
    };
  }
  endless() {
    return {
      pull: (controller) => {
        this.setState({ ...this.state, pulled: this.state.pulled + 1 });
        controller.enqueue(new Uint8Array(100_000).fill(this.state.pulled));
        if (this.state.pulled === 100) controller.close();
      },
    };
  }
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const [, how] = pathname.split("/");
    const answer = await env.Teller.getByName("a").fetch(request);
    if (how === "read") return new Response((await answer.text()).toUpperCase());
    if (how === "wrapped") return new Response(answer.body, { headers: { "x-wrapped": "yes", "content-type": "text/event-stream" } });
    if (how === "changed") {
      const upper = new TransformStream({
        transform: (part, controller) => controller.enqueue(bytes(new TextDecoder().decode(part).toUpperCase())),
      });
      return new Response(answer.body.pipeThrough(upper), answer);
    }
    return answer;
  },
};
`;

describe("HostStreams", () => {
  const NUMBER = 7;
  let clock: SkippingClock;
  let streams: HostStreams;
  let ask: (payload: string) => Promise<string>;
  beforeEach(() => {
    clock = new SkippingClock({ stands: true });
    streams = new HostStreams({
      answerOn: (_subject, answer) => {
        ask = async (payload) => answer(payload);
        return () => {};
      },
      clock,
    });
  });
  afterEach(() => streams.close());

  function newProcess() {
    const sent: ToProcess[] = [];
    const held = new HeldBytes(() => {
      throw new Error("It holds too much");
    });
    const ended = Promise.withResolvers<Error>();
    return {
      sent,
      process: {
        ...{ held, isEnded: false, ended: ended.promise },
        send: (message: ToProcess) => void sent.push(message),
      },
    };
  }
  const askFor = async ({ stream }: AnswerStream, part: number, more: object = {}) =>
    JSON.parse((await ask(JSON.stringify({ stream, part, ...more }))) || "null");
  const said = (part: StreamPart) => ({ type: "part", stream: NUMBER, after: 0, part }) as const;
  const bytes = (text: string) => said({ bytes: new Uint8Array(Buffer.from(text)) });

  it("repeats a part that is asked for again, and gives none out of turn", async () => {
    const { process, sent } = newProcess();
    const stream = streams.open(process, NUMBER);
    expect(streams.open(process, NUMBER)).to.deep.equal(stream);
    const first = askFor(stream, 1);
    streams.heard(process, bytes("one"));
    expect(await first).to.deep.equal({ part: { text: "one" } });
    expect(await askFor(stream, 1)).to.deep.equal({ part: { text: "one" } });
    expect(sent).to.deep.equal([{ type: "pull", stream: NUMBER }]);
    expect(await askFor(stream, 3)).to.have.property("failed");
    const second = askFor(stream, 2);
    streams.heard(process, said({ isEnd: true }));
    expect(await second).to.deep.equal({ end: true });
    expect(await askFor(stream, 2)).to.deep.equal({ end: true });
    expect(await askFor({ ...stream, stream: "other" }, 1)).to.have.property("failed");
  });

  it("says after APP_STREAM_WAIT_MS that there is no part yet", async () => {
    const { process } = newProcess();
    const stream = streams.open(process, NUMBER);
    const none = askFor(stream, 1);
    clock.skip(APP_STREAM_WAIT_MS);
    expect(await none).to.deep.equal({ wait: true });
    const one = askFor(stream, 1);
    streams.heard(process, bytes("one"));
    expect(await one).to.deep.equal({ part: { text: "one" } });
  });

  it("ends an answer that nobody has read for APP_STREAM_UNREAD_MS, and holds nothing of it", async () => {
    const { process, sent } = newProcess();
    const stream = streams.open(process, NUMBER);
    const first = askFor(stream, 1);
    streams.heard(process, bytes("one"));
    await first;
    clock.skip(APP_STREAM_UNREAD_MS - 1);
    await turnOfLoop();
    expect(sent).to.have.length(1);
    clock.skip(1);
    await turnOfLoop();
    expect(sent.slice(1)).to.deep.equal([{ type: "pull", stream: NUMBER, isLeft: true }]);
    expect(process.held.hasRoom(APP_HELD_BYTES_MAX)).to.equal(true);
    expect(await askFor(stream, 2)).to.have.property("failed");
  });

  it("ends an answer at once when its reader leaves", async () => {
    const { process, sent } = newProcess();
    const stream = streams.open(process, NUMBER);
    expect(await askFor(stream, 1, { isLeft: true })).to.equal(null);
    expect(sent).to.deep.equal([{ type: "pull", stream: NUMBER, isLeft: true }]);
    expect(streams.ofEntry(process)).to.equal(0);
  });

  it("refuses a part that nobody asked for", async () => {
    const { process } = newProcess();
    const stream = streams.open(process, NUMBER);
    for (let times = 0; times < 2; times++) streams.heard(process, bytes("unasked"));
    const first = askFor(stream, 1);
    streams.heard(process, bytes("one"));
    for (let times = 0; times < 2; times++) streams.heard(process, bytes("unasked"));
    expect(await first).to.deep.equal({ part: { text: "one" } });
    expect(await askFor(stream, 1)).to.deep.equal({ part: { text: "one" } });
  });

  it("has APP_STREAMS_MAX of a process, and refuses one more", () => {
    const { process, sent } = newProcess();
    for (let number = 1; number <= APP_STREAMS_MAX; number++) streams.open(process, number);
    expect(streams.ofEntry(process)).to.equal(APP_STREAMS_MAX);
    expect(() => streams.open(process, APP_STREAMS_MAX + 1)).to.throw("still being made");
    expect(sent).to.deep.equal([{ type: "pull", stream: APP_STREAMS_MAX + 1, isLeft: true }]);
    streams.open(newProcess().process, 1);
  });

  it("reads one part at a time of a lent answer", async () => {
    const { process } = newProcess();
    const lent = streams.lend(process, streams.open(newProcess().process, NUMBER));
    const { promise, resolve } = Promise.withResolvers<string>();
    const first = streams.readLent(process, lent, () => promise);
    expect(await refusalOf(streams.readLent(process, lent, async () => "none"))).to.include({
      code: "busy",
    });
    resolve("one");
    expect(await first).to.equal("one");
    expect(await streams.readLent(process, lent, async () => "two")).to.equal("two");
  });

  it("lends a stream to one process, which can pass on only that stream", () => {
    const [maker, reader, other] = [newProcess(), newProcess(), newProcess()];
    const stream = streams.open(maker.process, NUMBER, 1);
    const lent = streams.lend(reader.process, stream);
    expect(() => streams.restOf(other.process, { lent })).to.throw("Cannot read");
    expect(() => streams.restOf(reader.process, { lent: lent + 1 })).to.throw("Cannot read");
    expect(streams.restOf(reader.process, { lent })).to.deep.equal(stream);
    expect(() => streams.restOf(reader.process, { lent })).to.throw("Cannot read");
    const first = streams.lend(reader.process, stream);
    for (let more = 0; more < APP_STREAMS_MAX; more++) streams.lend(reader.process, stream);
    expect(streams.lent(reader.process, first)).to.equal(undefined);
    expect(streams.lent(reader.process, first + 1)).to.deep.equal(stream);
  });
});

describe("answers that are still being made", function () {
  this.timeout(120_000);
  let world: AgentWorld;
  let host: AgentHost;
  let app: string;
  const key = (name: string) => keyOf("tells", "Teller", name);
  beforeEach(async () => {
    world = await startAgentWorld();
    host = await world.host("first");
    app = await world.deploy("tells", CODE, {
      agents: [{ binding: "Teller", class_name: "Teller" }],
    });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const request = (path: string): AppRequest => ({
    method: "GET",
    url: `http://app/${path}`,
    headers: [],
  });
  const ofAgent = (path: string, name = "a") =>
    world.client.call(agent, key(name), "request", request(path));
  const ofEntry = (path: string) => world.client.call(appEntry, app, "request", request(path));
  const invoke = async (method: string, ...args: unknown[]) => {
    const given = serialize({ args }).toString("base64");
    const input = { method, args: given };
    const { result } = await world.client.call(agent, key("a"), "invoke", input);
    return deserialize(Buffer.from(result, "base64")) as never;
  };
  const say = (text: string) => invoke("say", text);
  const read = (rest: AnswerStream | undefined, signal = new AbortController().signal) => {
    if (!rest) throw new Error("The answer is whole");
    const parts = readAnswerStream({ bus: world.world.bus, clock }, rest, signal);
    return {
      next: async () => {
        const { done, value } = await parts.next();
        return done ? "(end)" : value.toString();
      },
      leave: () => parts.return(),
      parts,
    };
  };
  const isWhole = ({ rest }: AppAnswer) => rest === undefined;

  for (const [who, ask] of [
    ["an agent's", () => ofAgent("lines")],
    ["its entry's, of an agent", () => ofEntry("as-is/lines")],
    ["its entry's, with another head", () => ofEntry("wrapped/lines")],
  ] as const) {
    it(`${who}: each part leaves when it is made, and the end too`, async () => {
      const answer = await ask();
      expect(answer.status).to.equal(200);
      const lines = read(answer.rest);
      for (const text of ["one", "two"]) {
        await say(text);
        expect(await lines.next()).to.equal(text);
      }
      await say("end");
      expect(await lines.next()).to.equal("(end)");
      expect(await invoke("rows")).to.deep.equal(["one", "two"]);
      expect(await invoke("stateNow")).to.include({ cancelled: 0 });
    });
  }

  for (const [who, address, path] of [
    ["an agent", () => addressOf(agent.kind, key("a")), "lines"],
    ["an entry", () => addressOf(appEntry.kind, app), "as-is/lines"],
  ] as const) {
    it(`${who} answers a copy of a request with the same stream, and no part is lost`, async () => {
      const { bus } = world.world;
      // A client sends a call again when it takes long. The copy and the answer may cross.
      const ask = async () => {
        const call = { message: "request", input: request(path), client: "c", number: 1 };
        const subject = callSubject(bus.shardOf(address()), address());
        const payload = JSON.stringify({ ...call, settled: 1, deadlineAt: Date.now() + 60_000 });
        const answer = await bus.request(subject, payload, { timeoutMs: 60_000 });
        return AppAnswer.parse(parseJson(answer.string()));
      };
      const answer = await ask();
      expect(await ask()).to.deep.equal(answer);
      const lines = read(answer.rest);
      for (const text of ["one", "two", "three"]) {
        await say(text);
        expect(await lines.next()).to.equal(text);
      }
    });
  }

  it("an entry reads an agent's answer to its end, and may change it", async () => {
    const whole = ofEntry("read/lines");
    for (const text of ["one ", "two", "end"]) await say(text);
    expect((await whole).body).to.deep.equal({ text: "ONE TWO" });
    const changed = read((await ofEntry("changed/lines")).rest);
    for (const text of ["three", "four"]) {
      await say(text);
      expect(await changed.next()).to.equal(text.toUpperCase());
    }
    await changed.leave();
    await until("the agent hears of it", async () => {
      const { cancelled } = await invoke("stateNow");
      return cancelled === 1;
    });
  });

  it("an answer that is ready in time goes as a whole, and an event stream never waits for that", async () => {
    const whole = await ofAgent("whole?type=text/plain");
    expect(whole.body).to.deep.equal({ text: "all of it" });
    expect(isWhole(whole)).to.equal(true);
    const slow = await ofAgent("lines?type=text/plain");
    expect(isWhole(slow)).to.equal(false);
    const events = await ofAgent("whole");
    expect(events.body).to.equal(undefined);
    const { next } = read(events.rest);
    expect([await next(), await next()]).to.deep.equal(["all of it", "(end)"]);
  });

  it("an app makes no more than is read, in parts of APP_STREAM_PART_BYTES_MAX, and all of it comes", async () => {
    const { parts } = read((await ofAgent("endless")).rest);
    const got: Buffer[] = [];
    for (let part = 0; part < 3; part++) {
      const { value } = await parts.next();
      got.push(value as Buffer);
    }
    const { pulled } = (await invoke("stateNow")) as { pulled: number };
    expect(pulled).to.be.below(100);
    for await (const part of parts) {
      expect(part.length).to.be.at.most(APP_STREAM_PART_BYTES_MAX);
      got.push(part);
    }
    const all = Buffer.concat(got);
    expect(all.length).to.equal(100 * 100_000);
    for (let one = 0; one < 100; one++) expect(all[one * 100_000]).to.equal(one + 1);
  });

  it("the app learns that the reader has left, and makes no more of the answer", async () => {
    const lines = read((await ofAgent("lines")).rest);
    await say("one");
    expect(await lines.next()).to.equal("one");
    const leaving = new AbortController();
    const other = read((await ofAgent("lines")).rest, leaving.signal);
    const never = other.next().catch((error: unknown) => String(error));
    leaving.abort(new Error("left"));
    expect(await never).to.equal("Error: left");
    await lines.leave();
    await until("both are cancelled", async () => {
      const { cancelled } = await invoke("stateNow");
      return cancelled === 2;
    });
  });

  it("break off with a reason if the code fails or its process ends", async () => {
    const failing = read((await ofAgent("lines")).rest);
    await say("throw");
    expect(await refusalOf(failing.next())).to.include({
      code: "app_failed",
      message: "The answer broke off: the app's code failed",
    });
    const ended = read((await ofAgent("lines")).rest);
    await say("one");
    expect(await ended.next()).to.equal("one");
    const next = refusalOf(ended.next());
    const running = await host.agents.processes.of(app);
    process.kill(running.process.pid, "SIGKILL");
    expect(await next).to.include({ message: "The answer broke off: its process has ended" });
  });

  it("break off as soon as their agent is to leave, and those that it answers as it leaves", async () => {
    const open = read((await ofAgent("lines")).rest);
    await say("one");
    expect(await open.next()).to.equal("one");
    const slow = ofAgent("slow");
    await until("it is under way", async () => {
      const { slow: turns } = await invoke("stateNow");
      return turns === 1;
    });
    const next = refusalOf(open.next());
    await world.client.call(agent, key("a"), "reload", {});
    expect(await next).to.include({ message: "The answer broke off: its agent has moved" });
    const answered = read((await slow).rest);
    expect(await refusalOf(answered.next())).to.include({
      message: "The answer broke off: its agent has moved",
    });
  });

  it("break off if their host is gone", async () => {
    const lines = read((await ofAgent("lines")).rest);
    await say("one");
    expect(await lines.next()).to.equal("one");
    await host.stop();
    expect(await refusalOf(lines.next())).to.include({ code: "app_failed" });
  });
});
