import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import pino from "pino";
import { MAIL_RETRY_MS_MAX, MAIL_TRIES_MAX, MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, deadSubject, STREAMS, shardOf } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { ActorHost } from "../actor-host.ts";
import { systemClock } from "../lib/clock.ts";
import { Outbox } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import { MailReader, prefetchBytesOf, type ReaderParts } from "./delivery-reader.ts";
import {
  MAIL_IN_FLIGHT_MAX,
  MAIL_OF_ACCOUNT_MAX,
  MAIL_OF_HOSTED_MAX,
  MAIL_OF_KEY_MAX,
} from "./mail-in-flight.ts";

describe("mail", function () {
  this.timeout(90_000);
  const clock = new SkippingClock();
  let world: World;
  let host: ActorHost;
  before(async () => {
    world = await startWorld({ definitions: [counterActor, probeActor], clock });
    host = await world.host();
  });
  after(() => world[Symbol.asyncDispose]());

  const note = (key: string, text: string) => world.client.send(probe, key, "note", { text });
  const log = async (key: string) => (await world.client.call(probe, key, "get", {})).log;
  const logged = (key: string, count: number) =>
    until(`${key} has ${count} notes`, async () => {
      const lines = await log(key);
      return lines.length >= count && lines;
    });
  const letter = (address: string) =>
    until(`a dead letter of ${address}`, async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      const message = await world.bus.readLast(STREAMS.dead, deadSubject(address));
      return message?.json<object>();
    });
  /** Publishes mail that none of our clients would write. */
  const publish = (address: string, payload: string) =>
    world.bus.jetstream.jetstream().publish(mailIn(0).to(shardOf(address), address), payload);
  const publishIn = (own: World, address: string, text = "x") => {
    const subject = mailIn(0).to(shardOf(address, own.bus.layout.shards), address);
    const payload = JSON.stringify({ from: "probe.test", message: "note", input: { text } });
    return own.bus.jetstream.jetstream().publish(subject, payload);
  };
  /** Reads the mail of a shard without a host. Agents are the only hosted kind. */
  function read(own: World, number: number, deliver: ReaderParts["deliver"]) {
    const shard = new Shard({
      ...{ number, epoch: 1, host: "host", subjects: own.subjects, sentRevisions: [0] },
      outbox: new Outbox(undefined),
      shards: own.bus.layout.shards,
    });
    const isHosted = (kind: string) => kind === "agent";
    const parts = { bus: own.bus, clock: systemClock, logger: pino({ level: "silent" }) };
    const reading = new MailReader({ ...parts, deliver, isHosted }, shard).read();
    const close = async () => {
      shard.closing.abort();
      await reading;
    };
    return { shard, close };
  }
  const gone = () =>
    until("all mail is gone", async () => {
      clock.skip(1_000);
      return (await world.mailWaiting()) === 0;
    });

  it("reaches each actor once, in the order of sending, and is removed", async () => {
    const numbers = Array.from({ length: 300 }, (_, index) => String(index));
    for (const text of numbers) {
      await Promise.all(["order-a", "order-b", "order-c"].map((key) => note(key, text)));
    }
    for (const key of ["order-a", "order-b", "order-c"]) {
      expect(await logged(key, 300)).to.deep.equal(numbers);
    }
    await gone();
  });

  it("is removed after a removal that failed, although no later mail comes", async () => {
    await using own = await startWorld();
    const { streams } = own.bus.jetstream;
    const purge = streams.purge.bind(streams);
    let purges = 0;
    streams.purge = async (...parameters) => {
      purges += 1;
      if (purges === 1) throw new Error("cut off");
      return await purge(...parameters);
    };
    const address = addressOf("probe", "lone");
    await publishIn(own, address);
    const { close } = read(own, shardOf(address), (_, __, delivery) => delivery.done());
    await until("it is removed", async () => (await own.mailWaiting()) === 0);
    expect(purges).to.equal(2);
    await close();
  });

  it("to apps that do not handle it has half of the places, and one account half of these", async () => {
    await using own = await startWorld({ shards: 1 });
    const names = (account: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${account}.app.room.${index}`);
    const keys = [...names("a", MAIL_IN_FLIGHT_MAX), ...names("b", MAIL_OF_HOSTED_MAX)];
    await Promise.all(keys.map((key) => publishIn(own, addressOf("agent", key), "one")));
    // These must not overtake the first mail of their agents, which may be skipped.
    const again = keys.filter((_, index) => index % 50 === 0);
    await Promise.all(again.map((key) => publishIn(own, addressOf("agent", key), "two")));
    await publishIn(own, addressOf("probe", "a.beside"));
    const seen: string[] = [];
    const waiting: (() => void)[] = [];
    let others = 0;
    const { close } = read(own, 0, (_, { kind, key }, { input, done }) => {
      if (kind === "agent") {
        seen.push(`${key} ${(input as { text: string }).text}`);
        waiting.push(done);
        return;
      }
      others += 1;
      done();
    });
    await until("the mail behind them came", () => others === 1, 60_000);
    const ofAccount = (account: string) => seen.filter((one) => one.startsWith(`${account}.`));
    for (const account of ["a", "b"]) {
      expect(ofAccount(account)).to.have.length(MAIL_OF_ACCOUNT_MAX);
    }
    const isDone = () => {
      for (const done of waiting.splice(0)) done();
      return seen.length === keys.length + again.length;
    };
    await until("all of it came", isDone, 60_000);
    expect(new Set(seen).size).to.equal(seen.length);
    for (const key of again) {
      expect(seen.indexOf(`${key} one`)).to.be.below(seen.indexOf(`${key} two`));
    }
    await close();
  });

  it("that was skipped and then removed holds up neither later mail of its key nor the removal of mail", async () => {
    await using own = await startWorld({ shards: 1 });
    const address = addressOf("probe", "forgotten");
    for (let index = 0; index < MAIL_OF_KEY_MAX + 10; index++) await publishIn(own, address);
    const waiting: (() => void)[] = [];
    const { shard, close } = read(own, 0, (_, __, { done }) => void waiting.push(done));
    await until("the rest is skipped", () => shard.mail.read === MAIL_OF_KEY_MAX + 10);
    expect(waiting).to.have.length(MAIL_OF_KEY_MAX);
    const { stream, to } = mailIn(0);
    await own.bus.jetstream.streams.purge(stream, { filter: to(0, address) });
    for (const done of waiting.splice(0)) done();
    await until("nothing is skipped", () => shard.mail.passedBy.size === 0);
    await publishIn(own, address);
    await until("later mail came", () => waiting.length === 1);
    waiting[0]?.();
    await until("it is removed", async () => (await own.mailWaiting()) === 0);
    await close();
  });

  it("is read in parts of a host's share for each shard, but not in smaller parts than 32 kB", () => {
    const parts = [64, 250, 251, 4_096].map((shards) => prefetchBytesOf({ shards }));
    expect(parts).to.deep.equal([125_000, 32_000, 32_000, 32_000]);
  });

  it("arrives in order also at an actor whose earlier mail fails for a while", async () => {
    await note("falter", "first");
    // Without the skipped clock, the pauses before its last try would take half a minute.
    const times = MAIL_TRIES_MAX - 1;
    await world.client.send(probe, "falter", "falter", { text: "second", times });
    await note("falter", "third");
    await note("other", "unmoved");
    expect(await logged("other", 1)).to.deep.equal(["unmoved"]);
    expect(await logged("falter", 1)).to.deep.equal(["first"]);
    // Calls go on meanwhile.
    await world.client.call(probe, "falter", "append", { text: "call" });
    await until("the third came", async () => {
      clock.skip(1_000);
      return (await log("falter")).length === 4;
    });
    expect(await log("falter")).to.deep.equal(["first", "call", "second", "third"]);
  });

  it("is tried MAIL_TRIES_MAX times, then becomes a dead letter, and later mail arrives", async () => {
    const almost = MAIL_TRIES_MAX - 1;
    await world.client.send(probe, "tries", "falter", { text: "just in time", times: almost });
    await world.client.send(probe, "tries", "falter", { text: "too late", times: MAIL_TRIES_MAX });
    await note("tries", "after");
    expect(await letter("probe.tries")).to.deep.include({
      message: "falter",
      input: { text: "too late", times: MAIL_TRIES_MAX },
      error: "faltered as asked",
      tries: MAIL_TRIES_MAX,
    });
    expect(await logged("tries", 2)).to.deep.equal(["just in time", "after"]);
    await gone();
  });

  it("that is refused becomes a dead letter at once, as does mail for an unknown kind or message", async () => {
    await world.client.send(probe, "refused", "falter", { text: "x", times: -1 });
    expect(await letter("probe.refused")).to.deep.include({ tries: 1, message: "falter" });
    for (const [address, payload, shown] of [
      [
        "probe.unknown",
        '{"from":"me","message":"nothing","input":{"a":1}}',
        { message: "nothing" },
      ],
      ["probe.wrong", '{"from":"me","message":"note","input":{"text":1}}', { message: "note" }],
      ["nobody.x", '{"from":"me","message":"note","input":1}', { message: "note", input: 1 }],
      ["probe.unreadable", "{", { message: "(unreadable)", input: "{" }],
      ["probe.shapeless", '{"message":1}', { message: "(unreadable)", input: '{"message":1}' }],
    ] as const) {
      await publish(address, payload);
      expect(await letter(address), address).to.deep.include(shown);
    }
    await gone();
  });

  it("never makes a call: a message with a reply becomes a dead letter, and has no effect", async () => {
    const call = { message: "fillRows", input: { from: 0, count: 1, characters: 9 } };
    await publish("probe.called", JSON.stringify({ from: "me", ...call }));
    expect(await letter("probe.called")).to.deep.include({
      ...call,
      tries: 0,
      error: "Cannot deliver fillRows: its caller waits for a reply",
    });
    expect(await world.client.call(probe, "called", "getRow", { row: "row0" })).to.deep.equal({
      value: null,
    });
    await gone();
  });

  it("with a subject that is no key's address becomes a dead letter, and blocks no other mail", async () => {
    const number = shardOf("probe.=zz");
    await publish("probe.=zz", '{"from":"me","message":"note","input":{"text":"x"}}');
    await note("way", "clear");
    await logged("way", 1);
    await gone();
    const dead = await letter(addressOf("(nobody)", mailIn(0).to(number, "probe.=zz")));
    expect(dead).to.deep.include({ message: "note", input: { text: "x" } });
  });

  it("of the largest size can become a dead letter, with an equally long error", async () => {
    const payload = (text: string) =>
      JSON.stringify({ from: "me", message: "note", input: { text } });
    const room = MESSAGE_BYTES_MAX - payload("").length;
    await publish("nobody.large", payload("x".repeat(room)));
    await letter("nobody.large");
    // JSON inside JSON doubles the length of quotes.
    await publish("probe.quotes", '"'.repeat(MESSAGE_BYTES_MAX));
    await letter("probe.quotes");
    await gone();
    const error = await refusalOf(note("large", "x".repeat(MESSAGE_BYTES_MAX)));
    expect(error.code).to.equal("body_too_large");
  });

  it("past MAIL_IN_FLIGHT_MAX waits in the stream until there is room, and all of it arrives", async () => {
    const stuck = "stuck";
    const shard = shardOf(addressOf("probe", stuck));
    const neighbour = keyOn(shard, "neighbour");
    await world.client.send(probe, stuck, "falter", { text: "opened", times: 3 });
    const count = MAIL_IN_FLIGHT_MAX + 200;
    await Promise.all(Array.from({ length: count }, (_, index) => note(stuck, String(index))));
    await note(neighbour, "behind them");
    await until("all of it came", async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      return (await log(stuck)).length === count + 1;
    });
    await logged(neighbour, 1);
    expect(new Set(await log(stuck)).size).to.equal(count + 1);
    await gone();
  });

  it("of a key that keeps failing delays no other key, however much there is, and arrives in order", async () => {
    const stuck = "held";
    const neighbour = keyOn(shardOf(addressOf("probe", stuck)), "beside");
    await world.client.send(probe, stuck, "falter", {
      text: "opened",
      times: MAIL_TRIES_MAX - 1,
    });
    const texts = Array.from({ length: MAIL_IN_FLIGHT_MAX + 100 }, (_, index) => String(index));
    for (const text of texts) await note(stuck, text);
    await note(neighbour, "not behind them");
    await logged(neighbour, 1);
    expect(await log(stuck)).to.deep.equal([]);
    await until("all of it came", async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      return (await log(stuck)).length === texts.length + 1;
    });
    expect(await log(stuck)).to.deep.equal(["opened", ...texts]);
    await gone();
  });

  it("arrives once although its host is replaced again and again meanwhile", async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `moving-${index}`);
    const total = 600;
    const sending = (async () => {
      for (let index = 0; index < total; index++) {
        const [from, to] = [keys[index % 20] ?? "", keys[(index * 7 + 1) % 20] ?? ""];
        await world.client.call(counter, from, "give", { to, by: 1 });
      }
    })();
    for (let round = 0; round < 3; round++) {
      const next = await world.host({ name: `next-${round}` });
      await host.stop();
      host = next;
    }
    await sending;
    const expected = keys.map((_, index) => {
      let by = 0;
      for (let n = 0; n < total; n++) {
        if ((n * 7 + 1) % 20 === index) by += 1;
        if (n % 20 === index) by -= 1;
      }
      return by;
    });
    const counts = async () => {
      const all = await Promise.all(keys.map((key) => world.client.call(counter, key, "get", {})));
      return all.map(({ count }) => count);
    };
    // Mail that the last host had not sent enters the stream only when the next host publishes it.
    await until("all of it came", async () => isDeepStrictEqual(await counts(), expected));
    await gone();
    expect(await counts()).to.deep.equal(expected);
  });

  it("that arrived while the state could not be read is not overtaken", async () => {
    const address = "probe.blocked";
    const value = world.subjects.value(address);
    const good = '{"state":{"log":["stored"]},"mail":0}';
    const jetstream = world.bus.jetstream.jetstream();
    await jetstream.publish(value, '{"state":{"log":"not a list"}}');
    await note("blocked", "first");
    await until("the load failed", () =>
      world.log.some(({ msg, key }) => msg === "actor not loaded" && key === "blocked"),
    );
    await note("blocked", "second");
    expect((await refusalOf(world.client.call(probe, "blocked", "get", {}))).code).to.equal(
      "unavailable",
    );
    await jetstream.publish(value, good);
    await until("both came", async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      return (await log("blocked").catch(() => [])).length === 3;
    });
    expect(await log("blocked")).to.deep.equal(["stored", "first", "second"]);
  });

  function keyOn(shard: number, prefix: string): string {
    for (let number = 0; ; number++) {
      const key = `${prefix}-${number}`;
      if (shardOf(addressOf("probe", key)) === shard) return key;
    }
  }
});
