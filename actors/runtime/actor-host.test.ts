import { headers, type Msg } from "@nats-io/transport-node";
import { expect } from "chai";
import { ActorError } from "../../schemas/errors.ts";
import {
  CALL_BATCH_MAX,
  CLOCK_SKEW_MS_MAX,
  FAULTS_MAX,
  KEY_CHARS_MAX,
  MESSAGE_BYTES_MAX,
  STATE_BYTES_MAX,
} from "../../schemas/limits.ts";
import { addressOf, callSubject, shardOf } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../scripts/testing/counter.ts";
import { probe, probeActor, tally, tallyActor } from "../../scripts/testing/probe.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../scripts/testing/skipping-clock.ts";
import { until } from "../../scripts/testing/until.ts";
import { ACTIVATION_IDLE_MS, VOLATILE_IDLE_MS } from "./activation/activations.ts";
import type { ActorHost } from "./actor-host.ts";
import { decodeRefusal } from "./bus/refusal.ts";

const definitions = [counterActor, probeActor, tallyActor];
/** How long a test waits before it concludes that no answer comes. */
const SILENCE_MS = 1_000;

describe("ActorHost", function () {
  this.timeout(60_000);
  let world: World;
  let host: ActorHost;
  const clock = new SkippingClock();
  before(async () => {
    world = await startWorld({ definitions, clock });
    host = await world.host();
  });
  after(() => world[Symbol.asyncDispose]());

  /**
   * Sends a call to `actor.<kind>.<key>`, as any NATS tool can. A host forwards the call to the subject of the shard.
   */
  const ask = (tail: string, payload: unknown, timeoutMs = 20_000) =>
    world.bus.request(
      `actor.${tail}`,
      typeof payload === "string" ? payload : JSON.stringify(payload),
      { timeoutMs },
    );
  const asked = (key: string, fields: object, timeoutMs?: number) => {
    const deadlineAt = clock.now() + 5_000;
    const call = { client: "c", settled: 1, deadlineAt, ...fields };
    return ask(addressOf("counter", key), call, timeoutMs);
  };
  /** Of a call that nobody answers. */
  const unanswered = (key: string, fields: object) =>
    asked(key, fields, SILENCE_MS).catch((error: Error) => error);
  const increment = { message: "increment", input: { by: 1 } };
  const count = async (key: string) => (await world.client.call(counter, key, "get", {})).count;
  const refused = (answer: Msg) => decodeRefusal(answer.string());

  describe("a call that comes twice", () => {
    it("has one effect and one reply, for copies at the same time and later", async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => asked("twice", { ...increment, number: 1 })),
      );
      for (const answer of answers) expect(answer.json()).to.deep.equal({ count: 1 });
      expect((await asked("twice", { ...increment, number: 2 })).json()).to.deep.equal({
        count: 2,
      });
      expect((await asked("twice", { ...increment, number: 1 })).json()).to.deep.equal({
        count: 1,
      });
      expect(await count("twice")).to.equal(2);
    });

    it("has one effect also when the actor left memory between two copies", async () => {
      await asked("passive", { ...increment, number: 1 });
      await passivate();
      expect((await asked("passive", { ...increment, number: 1 })).json()).to.deep.equal({
        count: 1,
      });
      expect(await count("passive")).to.equal(1);
    });

    it("is dropped without an answer after its client has settled it", async () => {
      await asked("echo", { ...increment, number: 1 });
      await asked("echo", { ...increment, number: 2, settled: 2 });
      const echo = await unanswered("echo", { ...increment, number: 1 });
      expect(echo).to.have.property("name", "TimeoutError");
      expect(await count("echo")).to.equal(2);
    });

    it("counts as another call when another client sends it", async () => {
      await asked("both", { ...increment, number: 1 });
      await asked("both", { ...increment, number: 1, client: "d" });
      expect(await count("both")).to.equal(2);
    });
  });

  it("returns a call whose deadline passed longer ago than clocks may differ", async () => {
    const soon = { ...increment, number: 1, deadlineAt: clock.now() - CLOCK_SKEW_MS_MAX + 10_000 };
    expect((await asked("soon", soon)).json()).to.deep.equal({ count: 1 });
    const late = { ...increment, number: 1, deadlineAt: clock.now() - CLOCK_SKEW_MS_MAX - 1 };
    const { headers: returned } = await asked("late", late);
    expect(returned?.get("Nats-Service-Error-Code")).to.equal("421");
    expect(returned?.has("Trunkline-Late")).to.equal(true);
    expect(await count("late")).to.equal(0);
  });

  it("answers calls without an id, as people send them, and never mistakes one for another", async () => {
    expect((await ask("counter.hand", increment)).json()).to.deep.equal({ count: 1 });
    expect((await ask("counter.hand", increment)).json()).to.deep.equal({ count: 2 });
    expect((await ask("counter.hand", { message: "get" })).json()).to.deep.equal({ count: 2 });
    expect((await ask("counter.hand", { message: "tick", input: {} })).json()).to.equal(null);
    expect(await count("hand")).to.equal(3);
  });

  it("answers several calls in one message by their numbers, unreadable calls included", async () => {
    const own = { client: "batch", settled: 1, deadlineAt: clock.now() + 5_000 };
    type Answer = { number: number | null; reply?: unknown; refusal?: string };
    const heard: Answer[][] = [];
    world.bus.hearBelow("_INBOX.batch", (message) => heard.push(JSON.parse(message.string())));
    const calls = [
      { ...increment, ...own, number: 1 },
      { ...own, number: 2 },
      { ...increment, ...own, number: 3 },
      { ...increment, ...own, number: 1 },
      { message: "refuse", number: 4 },
      "no call",
    ];
    const reply = "_INBOX.batch.answers";
    world.bus.connection.publish("actor.counter.batch", JSON.stringify(calls), { reply });
    await until("all are answered", () => heard.flat().length === calls.length);
    const answers = heard.map((message) =>
      message.map(({ number, reply, refusal }) => [
        number,
        refusal === undefined ? reply : decodeRefusal(refusal).code,
      ]),
    );
    expect(answers).to.deep.equal([
      [
        [2, "invalid_request"],
        [null, "invalid_request"],
      ],
      [
        [1, { count: 1 }],
        [3, { count: 2 }],
        [1, { count: 1 }],
        [4, "conflict"],
      ],
    ]);
    expect(await count("batch")).to.equal(2);
  });

  it("takes CALL_BATCH_MAX calls in one message, and refuses one more", async () => {
    const calls = Array.from({ length: CALL_BATCH_MAX }, () => increment);
    expect((await ask("counter.many", calls)).json()).to.have.length(CALL_BATCH_MAX);
    const refusal = refused(await ask("counter.many", [...calls, increment]));
    expect(refusal.message).to.equal(
      `Cannot read calls: at most ${CALL_BATCH_MAX} go in one message`,
    );
    expect(await count("many")).to.equal(CALL_BATCH_MAX);
  });

  it("refuses a message that is no call, and says what a call looks like", async () => {
    for (const payload of ["", "{", "1", "null", '"x"', "[]", '{"input":{}}', '{"message":1}']) {
      const refusal = refused(await ask("counter.malformed", payload));
      expect(refusal.code, payload).to.equal("invalid_request");
      expect(refusal.message).to.contain('{"message":"<name>","input":{}}');
    }
    const odd = { message: "get", client: 1, number: "x", deadlineAt: "never" };
    expect(refused(await ask("counter.malformed", odd)).code).to.equal("invalid_request");
  });

  it("refuses an unknown kind or message, and names the known ones", async () => {
    const kind = refused(await ask("nobody.a", { message: "get" }));
    expect(kind).to.include({ code: "not_found", message: 'Cannot call "nobody": no such kind' });
    for (const message of ["gets", "constructor", "__proto__", "toString", ""]) {
      const refusal = refused(await ask("counter.a", { message }));
      expect(refusal.code, message).to.equal("invalid_request");
      expect(refusal.message).to.contain("counter knows increment, get");
    }
  });

  it("refuses a subject that is no key's address, and goes on", async () => {
    for (const tail of [
      "counter",
      "counter.=zz",
      "counter.=41",
      "counter.a=",
      "counter.é",
      "counter.=",
    ]) {
      const refusal = refused(await ask(tail, { message: "get" }));
      expect(refusal.code, tail).to.equal("invalid_request");
      expect(refusal.message, tail).to.match(/^Cannot read address/);
    }
    expect(await count("after")).to.equal(0);
  });

  it("refuses a key on a wrong shard, because the actor would live twice", async () => {
    const address = addressOf("counter", "astray");
    const wrong = callSubject((shardOf(address) + 1) % 64, address);
    const answer = await world.bus.request(wrong, JSON.stringify(increment));
    expect(refused(answer).code).to.equal("invalid_request");
    expect(await count("astray")).to.equal(0);
  });

  it("passes on a refusal with code, message and details, also in headers", async () => {
    const error = await refusalOf(
      world.client.call(probe, "a", "refuse", { text: "Cannot é:\nnot so" }),
    );
    expect(error).to.be.instanceOf(ActorError);
    expect(error).to.include({ code: "rate_limited", message: "Cannot é:\nnot so" });
    expect(error.details).to.deep.equal({ retryAfterS: 7, browserMs: 12 });
    const answer = await ask("probe.a", { message: "refuse", input: { text: "Cannot" } });
    expect(answer.headers?.get("Nats-Service-Error")).to.equal("Cannot");
    expect(answer.headers?.get("Nats-Service-Error-Code")).to.equal("429");
  });

  it("refuses an invalid input and names its faults", async () => {
    const answer = await ask("counter.a", { message: "increment", input: { by: "x" } });
    expect(refused(answer).details.faults?.map(({ pointer }) => pointer)).to.deep.equal(["/by"]);
    const rows = Object.fromEntries(Array.from({ length: 10_000 }, (_, row) => [`r${row}`, "x"]));
    const many = await ask("counter.a", { message: "setRows", input: { rows } });
    expect(refused(many).details.faults).to.have.length(FAULTS_MAX);
    const long = { ["x".repeat(900_000)]: 1, text: "a" };
    expect(refused(await ask("probe.a", { message: "append", input: long })).code).to.equal(
      "invalid_request",
    );
  });

  it("never reveals the text of an internal error", async () => {
    for (const [kind, message, input] of [
      ["counter", "break", {}],
      ["probe", "leak", {}],
      ["probe", "misspell", {}],
      ["probe", "mutate", {}],
      ["probe", "cycle", {}],
    ] as const) {
      const text = (await ask(`${kind}.inside`, { message, input })).string();
      expect(decodeRefusal(text).code, message).to.equal("internal_error");
      expect(text).to.not.match(/broken|secret|sends|read only|circular|object|stack|\.ts/i);
    }
  });

  it("prevents a handler from changing state or rows in place", async () => {
    const { client } = world;
    await client.call(probe, "frozen", "append", { text: "a" });
    await client.call(probe, "frozen", "setRow", { row: "r", value: "1" });
    for (const message of ["mutate", "mutateRows"] as const) {
      const error = await refusalOf(client.call(probe, "frozen", message, {}));
      expect(error.code, message).to.equal("internal_error");
    }
    expect((await client.call(probe, "frozen", "get", {})).log).to.deep.equal(["a"]);
    const { rows } = await client.call(probe, "frozen", "setRow", { row: "r", value: "2" });
    expect(rows).to.equal(1);
  });

  it("a misspelled key in a transition loses no acknowledged change", async () => {
    const { client } = world;
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, async (_, index) => {
        // Some calls come while the commit of earlier calls is in flight.
        await new Promise((resolve) => setTimeout(resolve, index % 17));
        if (index % 10 === 9) {
          return refusalOf(client.call(probe, "misspelled", "misspell", {})).then(() => 0);
        }
        return client.call(probe, "misspelled", "append", { text: String(index) }).then(
          () => 1,
          () => 0,
        );
      }),
    );
    const told = outcomes.reduce<number>((sum, one) => sum + one, 0);
    expect((await client.call(probe, "misspelled", "get", {})).log).to.have.length(told);
    await passivate();
    expect((await client.call(probe, "misspelled", "get", {})).log).to.have.length(told);
  });

  it("refuses a state that JSON cannot express, and the host goes on", async () => {
    const error = await refusalOf(world.client.call(probe, "cycle", "cycle", {}));
    expect(error.code).to.equal("internal_error");
    expect(await world.client.call(probe, "cycle", "get", {})).to.deep.equal({ log: [] });
    await world.client.call(counter, "after-cycle", "increment", { by: 1 });
  });

  it("refuses a state or row that could not be loaded again, and harms no other message", async () => {
    const { client } = world;
    for (const row of [false, true]) {
      const key = `misfit-${row}`;
      const around = ["a", "b", "c"].map((text) => client.call(probe, key, "append", { text }));
      const misfit = refusalOf(client.call(probe, key, "misfit", { row }));
      around.push(client.call(probe, key, "append", { text: "d" }));
      expect((await misfit).code).to.equal("internal_error");
      expect((await Promise.all(around)).at(-1)).to.deep.equal({ log: ["a", "b", "c", "d"] });
      const value = await until("it is stored", () =>
        world.bus.readLast(world.subjects.stream, world.subjects.value(addressOf(probe.kind, key))),
      );
      expect(JSON.parse(value.string()).state.log).to.deep.equal(["a", "b", "c", "d"]);
    }
  });

  it("sends a reply that fits a message; a larger one is an internal error", async () => {
    const text = (length: number) =>
      world.client.call(probe, "reply", "answer", { characters: length });
    const room = MESSAGE_BYTES_MAX - JSON.stringify({ text: "" }).length;
    expect((await text(room)).text).to.have.length(room);
    expect((await refusalOf(text(room + 1))).code).to.equal("internal_error");
    expect((await refusalOf(text(5_000_000))).code).to.equal("internal_error");
    expect((await text(1)).text).to.equal("x");
  });

  it("takes keys of up to KEY_CHARS_MAX characters with their kind, with any characters", async () => {
    const room = KEY_CHARS_MAX - "counter.".length;
    for (const key of [
      "x".repeat(room),
      "é".repeat(Math.floor(room / 6)),
      "a b.c/d",
      ".",
      "a..b",
    ]) {
      expect(await world.client.call(counter, key, "increment", { by: 1 })).to.deep.equal({
        count: 1,
      });
      await passivate();
      expect(await count(key)).to.equal(1);
    }
    for (const key of ["", "x".repeat(room + 1), "é".repeat(room / 6 + 1), "\ud800"]) {
      expect((await refusalOf(world.client.call(counter, key, "get", {}))).code).to.equal(
        "invalid_request",
      );
    }
  });

  it("refuses a state past STATE_BYTES_MAX, and keeps the previous one", async () => {
    const { client } = world;
    await client.call(counter, "big", "increment", { by: 3 });
    const room = STATE_BYTES_MAX - 2_000;
    await client.call(counter, "big", "grow", { characters: room });
    const error = await refusalOf(
      client.call(counter, "big", "grow", { characters: STATE_BYTES_MAX }),
    );
    expect(error).to.include({ code: "limit_reached" });
    expect(error.message).to.match(/its state would be larger than 720000 bytes$/);
    expect(await count("big")).to.equal(3);
    expect(await client.call(counter, "big", "increment", { by: 1 })).to.deep.equal({ count: 4 });
  });

  it("mail that would make the state too large becomes a dead letter; earlier and later mail takes effect", async () => {
    const { client } = world;
    const dead = await world.count("DEAD");
    await client.send(probe, "swollen", "note", { text: "before" });
    await client.send(probe, "swollen", "swell", { characters: STATE_BYTES_MAX });
    await client.send(probe, "swollen", "note", { text: "after" });
    await until("the swelling is a dead letter", async () => {
      clock.skip(30_000);
      return (await world.count("DEAD")) === dead + 1;
    });
    await until("both notes are there", async () => {
      const { log } = await client.call(probe, "swollen", "get", {});
      return log.join() === "before,after";
    });
  });

  it("keeps a kind that is not durable only in memory", async () => {
    const { client } = world;
    const written: string[] = [];
    const watch = world.bus.connection.subscribe(world.subjects.all, {
      callback: (_, message) => void written.push(`${message.subject} ${message.string()}`),
    });
    expect(await client.call(tally, "a", "add", {})).to.deep.equal({ count: 1 });
    await client.send(tally, "a", "addLater", {});
    await until("the mail counts", async () => {
      const { count } = await client.call(tally, "a", "add", {});
      return count > 2;
    });
    await until("the mail is gone", async () => (await world.mailWaiting()) === 0);
    await client.call(counter, "beside", "increment", { by: 1 });
    await until("what is written is seen", () =>
      written.some((line) => line.includes("counter.beside")),
    );
    watch.unsubscribe();
    expect(written.filter((line) => line.includes("tally"))).to.deep.equal([]);
    expect(await world.count(world.subjects.stream, world.subjects.value("tally.a"))).to.equal(0);
  });

  it("handles a message without a reply subject", async () => {
    world.bus.connection.publish("actor.counter.silent", JSON.stringify(increment), {
      headers: headers(),
    });
    await until("it is done", async () => (await count("silent")) === 1);
  });

  /** Lets time pass until every idle actor has left memory. */
  async function passivate(): Promise<void> {
    await until("the actors leave memory", () => {
      clock.skip(ACTIVATION_IDLE_MS + VOLATILE_IDLE_MS);
      return host.activations === 0;
    });
  }
});
