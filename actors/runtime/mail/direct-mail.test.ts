import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { defineContract, envelope } from "../../../schemas/contract.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { MAIL_RETRY_MS_MAX, MAIL_TRIES_MAX } from "../../../schemas/limits.ts";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, deadSubject, STREAMS, shardOf } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { ledger, ledgerActor } from "../../../scripts/testing/ledger.ts";
import { probe, probeActor, tallyActor } from "../../../scripts/testing/probe.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { ActorHost } from "../actor-host.ts";
import type { Bus } from "../bus/bus.ts";
import { defineActor } from "../kinds/define-actor.ts";
import type { Delivery } from "../shards/incoming.ts";
import { OUTBOX_BYTES_MAX, Outbox, unsent } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import { DIRECT_MAIL_MAX, DirectMail } from "./direct-mail.ts";
import { mailStreamOf, readSentMarks } from "./outbox-relay.ts";

const courier = defineContract({
  kind: "courier",
  messages: {
    /**
     * Sends a text of `characters` characters to each actor in `to`. Each of these actors then sends a text of
     * `after` characters.
     */
    start: {
      input: z.object({ to: z.array(z.string()), characters: z.int(), after: z.int() }),
      reply: z.object({ had: z.int() }),
    },
    carry: { input: z.object({ text: z.string(), after: z.int() }) },
    had: { input: z.object({}), reply: z.object({ had: z.int() }) },
    /** Starts a message that two actors send to each other while `isHopping` is true. */
    serve: { input: z.object({ to: z.string() }), reply: z.object({ had: z.int() }) },
    hop: { input: z.object({ to: z.string(), back: z.string() }) },
  },
});

let isHopping = false;
let hops = 0;

const courierActor = defineActor(courier, {
  state: z.object({ had: z.int() }),
  initial: { had: 0 },
  handlers: {
    start: (state, { to, characters, after }) => ({
      state,
      reply: state,
      send: to.map((key) =>
        envelope(courier, key, "carry", { text: "x".repeat(characters), after }),
      ),
    }),
    carry: ({ had }, { after }, { key }) => ({
      state: { had: had + 1 },
      send:
        after === 0
          ? []
          : [envelope(courier, `${key}-end`, "carry", { text: "x".repeat(after), after: 0 })],
    }),
    had: (state) => ({ state, reply: state }),
    serve: (state, { to }, { key }) => ({
      state,
      reply: state,
      send: [envelope(courier, to, "hop", { to, back: key })],
    }),
    hop(state, { to, back }) {
      hops += 1;
      const send = isHopping ? [envelope(courier, back, "hop", { to: back, back: to })] : [];
      return { state: { had: state.had + 1 }, send };
    },
  },
});

describe("mail between actors of one host", function () {
  this.timeout(90_000);
  const clock = new SkippingClock();
  let world: World;
  let host: ActorHost;
  before(async () => {
    world = await startWorld({ definitions: [probeActor, ledgerActor, courierActor], clock });
    host = await world.host();
  });
  after(() => world[Symbol.asyncDispose]());

  const log = async (key: string) => (await world.client.call(probe, key, "get", {})).log;
  const logged = (key: string, count: number) =>
    until(`${key} has ${count} notes`, async () => {
      const lines = await log(key);
      return lines.length >= count && lines;
    });
  const scatter = (from: string, to: string, text: string) =>
    world.client.call(probe, from, "scatter", { to: [to], text });
  const mailed = async () => (await world.bus.jetstream.streams.info(STREAMS.mail)).state.last_seq;
  /** Sends notes until mail from the one actor to the other no longer enters MAIL. Returns how many notes it took. */
  const untilDirect = async (from: string, to: string) => {
    let notes = 0;
    await until("mail stays here", async () => {
      const before = await mailed();
      await scatter(from, to, "warm");
      notes += 1;
      await logged(to, notes);
      return (await mailed()) === before;
    });
    return notes;
  };
  /** Reads a shard's outbox, without the entries that the `sent` mark lists as published. */
  const outboxOf = async (shard: number) => {
    const stored = await world.bus.readLast(world.subjects.stream, world.subjects.outbox(shard));
    const { marks } = await readSentMarks(world.bus, shard);
    return new Outbox(stored?.string(), marks, mailStreamOf(world.bus)).entries;
  };
  const noOutboxHolds = (shard: number) =>
    until("the outbox is empty where it is stored", async () => {
      clock.skip(1_000);
      return (await outboxOf(shard)).length === 0;
    });

  it("arrives in order without a stream, and leaves the outbox with its effect", async () => {
    const warm = await untilDirect("giver", "taker");
    const before = await mailed();
    const texts = Array.from({ length: 200 }, (_, index) => String(index));
    for (const text of texts) await scatter("giver", "taker", text);
    const lines = await logged("taker", warm + texts.length);
    expect(lines.slice(warm)).to.deep.equal(texts);
    expect(await mailed()).to.equal(before);
    await noOutboxHolds(shardOf("probe.giver"));
  });

  it("that fails goes by MAIL, and later mail of the same sender does not overtake it", async () => {
    const post = (to: string, stumbles: number) =>
      world.client.call(ledger, "poster", "post", { to, stumbles });
    const read = () => world.client.call(ledger, "reader", "read", {});
    for (const stumbles of [0, 0, 0, 2, 0, 0, MAIL_TRIES_MAX - 1, 0, 0]) {
      await post("reader", stumbles);
    }
    const { received, faults } = await until("all came", async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      const state = await read();
      return state.received.poster === 9 && state;
    });
    expect({ received, faults }).to.deep.equal({ received: { poster: 9 }, faults: [] });
    await noOutboxHolds(shardOf("ledger.poster"));
  });

  it("that is refused becomes one dead letter, and the host goes on", async () => {
    const text = "for nobody";
    await world.client.call(probe, "writer", "scatter", { to: ["brim"], text: "first" });
    await world.client.send(probe, "brim", "swell", { characters: 700_000 });
    await until("it is full", async () => (await log("brim")).length === 1);
    await world.client.call(probe, "writer", "scatter", { to: ["brim"], text: text.repeat(3_000) });
    const letter = await until("a dead letter", async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      const kept = await world.bus.readLast(STREAMS.dead, deadSubject(addressOf("probe", "brim")));
      return kept?.json<{ message: string; input: { text: string } }>();
    });
    expect(letter.input.text).to.equal(text.repeat(3_000));
    expect(await world.count(STREAMS.dead, deadSubject("probe.brim"))).to.equal(1);
    await world.client.call(probe, "writer", "scatter", { to: ["brim"], text: "last" });
    expect(await logged("brim", 2)).to.deep.equal(["first", "last"]);
  });

  it("to an actor that cannot be loaded goes by MAIL, and arrives in order when the actor can be loaded", async () => {
    await untilDirect("patient", "away");
    await scatter("patient", "barred", "first");
    await logged("barred", 1);
    await host.stop();
    const value = world.subjects.value("probe.barred");
    const jetstream = world.bus.jetstream.jetstream();
    await jetstream.publish(value, '{"state":{"log":"not a list"}}');
    host = await world.host({ name: "next" });
    for (const text of ["second", "third"]) await scatter("patient", "barred", text);
    const subject = mailIn(0).to(shardOf("probe.barred"), "probe.barred");
    await until("both are in MAIL", async () => {
      clock.skip(1_000);
      return (await world.count(STREAMS.mail, subject)) === 2;
    });
    await jetstream.publish(value, '{"state":{"log":["first"]},"mail":0}');
    await until("both came", async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      return (await log("barred").catch(() => [])).length === 3;
    });
    expect(await log("barred")).to.deep.equal(["first", "second", "third"]);
  });

  const had = async (key: string) => (await world.client.call(courier, key, "had", {})).had;
  const start = (from: string, to: string[], characters: number, after: number) =>
    world.client.call(courier, from, "start", { to, characters, after });
  /** Returns keys on the same shard as `key`, so that all their sends need room in one outbox. */
  function neighboursOf(key: string, count: number): string[] {
    const shardOfKey = (one: string) => shardOf(addressOf("courier", one));
    const keys: string[] = [];
    for (let number = 0; keys.length < count; number++) {
      if (shardOfKey(`${key}-${number}`) === shardOfKey(key)) keys.push(`${key}-${number}`);
    }
    return keys;
  }
  const warmUp = async (from: string, to: string) => {
    for (let round = 1; round <= 3; round++) {
      await start(from, [to], 1, 0);
      await until("it came", async () => (await had(to)) === round);
    }
  };

  it("that fills the outbox while its receivers wait for room in it goes by MAIL, and all of it arrives", async () => {
    const couriers = neighboursOf("first", 240);
    const [one = ""] = couriers;
    await warmUp("first", one);
    // After these two calls, the outbox has less room than any of the receivers needs.
    const characters = Math.floor(OUTBOX_BYTES_MAX / 2 / 120) - 170;
    await Promise.all([
      start("first", couriers.slice(0, 120), characters, 40_000),
      start("first", couriers.slice(120), characters, 40_000),
    ]);
    await until("all of it came", async () => {
      clock.skip(1_000);
      const ends = await Promise.all(couriers.map((key) => had(`${key}-end`)));
      return ends.every((count) => count === 1);
    });
    const counts = await Promise.all(couriers.map(had));
    expect(counts).to.deep.equal(couriers.map((key) => (key === one ? 4 : 1)));
    await noOutboxHolds(shardOf(addressOf("courier", "first")));
  });

  it("finds room in its shard's outbox while other actors of the host never stop sending", async () => {
    const [via = "", ...senders] = neighboursOf("crowd", 5);
    await warmUp(senders[0] ?? "", via);
    isHopping = true;
    for (const number of [1, 2, 3]) {
      await world.client.call(courier, `server-${number}`, "serve", { to: `returner-${number}` });
    }
    await until("they send", () => hops > 100);
    const before = hops;
    await Promise.all(senders.map((from) => start(from, [via], 280_000, 280_000)));
    await until("all of it came", async () => (await had(`${via}-end`)) === 4);
    isHopping = false;
    expect(hops).to.be.greaterThan(before);
  });

  it("of one fan-out is handed over up to DIRECT_MAIL_MAX, arrives in order and completely", async () => {
    const warm = await untilDirect("fan", "leaf");
    const before = await mailed();
    await world.client.call(probe, "fan", "scatter", { to: ["leaf"], text: "all", times: 256 });
    await logged("leaf", warm + DIRECT_MAIL_MAX);
    expect(await mailed()).to.equal(before);
    await Promise.all(
      [1, 2, 3].map(() =>
        world.client.call(probe, "fan", "scatter", { to: ["leaf"], text: "all", times: 256 }),
      ),
    );
    await logged("leaf", warm + 4 * DIRECT_MAIL_MAX);
    await noOutboxHolds(shardOf("probe.fan"));
  });

  it("that fails MAIL_TRIES_MAX times becomes a dead letter, tries within the host included", async () => {
    const post = (stumbles: number) =>
      world.client.call(ledger, "tries-a", "post", { to: "tries-b", stumbles });
    for (let number = 1; number <= 3; number++) {
      await post(0);
      await until("it came", async () => {
        const { received } = await world.client.call(ledger, "tries-b", "read", {});
        return received["tries-a"] === number;
      });
    }
    await post(MAIL_TRIES_MAX);
    const letter = await until("a dead letter", async () => {
      clock.skip(MAIL_RETRY_MS_MAX);
      const kept = await world.bus.readLast(STREAMS.dead, deadSubject("ledger.tries-b"));
      return kept?.json<{ tries: number }>();
    });
    expect(letter.tries).to.equal(MAIL_TRIES_MAX);
  });
});

describe("mail between actors whose hosts come and go", function () {
  this.timeout(90_000);

  it("has its effect once and in order, also if handlers fail", async () => {
    await using world = await startWorld({ definitions: [ledgerActor] });
    let host = await world.host();
    const keys = Array.from({ length: 12 }, (_, index) => `busy-${index}`);
    const read = (key: string) => world.client.call(ledger, key, "read", {});
    const total = 1_500;
    const posting = (async () => {
      for (let index = 0; index < total; index++) {
        const [from, to] = [keys[index % 12] ?? "", keys[(index * 5 + 1) % 12] ?? ""];
        await world.client.call(ledger, from, "post", { to, stumbles: index % 40 === 7 ? 1 : 0 });
      }
    })();
    for (let round = 0; round < 3; round++) {
      const next = await world.host({ name: `next-${round}`, complete: false });
      await until("it has shards", () => next.placement.openShards > 10);
      await host.stop();
      host = next;
    }
    await posting;
    const states = await until("all of it came", async () => {
      const all = await Promise.all(keys.map(read));
      const came = all.flatMap(({ received }) => Object.values(received));
      return came.reduce((sum, count) => sum + count, 0) >= total && all;
    });
    for (const [index, { received, faults }] of states.entries()) {
      expect(faults, keys[index]).to.deep.equal([]);
      for (const [from, count] of Object.entries(received)) {
        expect((await read(from)).sent[keys[index] ?? ""]).to.equal(count);
      }
    }
  });
});

describe("DirectMail", () => {
  const logger = pino({ level: "silent" });
  const note = (key: string, kind = "probe") =>
    unsent({ from: "probe.x", to: "actor", kind, key, message: "note", input: { text: key } });
  const shardAt = (number: number) =>
    new Shard({
      number,
      epoch: 1,
      host: "test",
      subjects: undefined as never,
      outbox: new Outbox(undefined),
      sentRevisions: [0],
    });

  /** Keys of its shard. */
  function neighboursOf(key: string): string[] {
    const all = Array.from({ length: 1_000 }, (_, number) => `neighbour-${number}`);
    const shardOfKey = (one: string) => shardOf(addressOf("probe", one));
    return all.filter((one) => shardOfKey(one) === shardOfKey(key));
  }

  function build(options: { next?: () => Promise<unknown>; together?: boolean } = {}) {
    const number = shardOf(addressOf("probe", "to"));
    const [from, to] = [shardAt(number === 1 ? 2 : 1), shardAt(number)];
    const delivered: Delivery[] = [];
    const published: Shard[] = [];
    const asked: number[] = [];
    const readNextOfLeader = async (_stream: string, _filter: string, after: number) => {
      asked.push(after);
      return options.next?.();
    };
    const direct = new DirectMail({
      bus: { readNextOfLeader, shardOf, layout: FIRST_LAYOUT } as unknown as Bus,
      logger,
      shards: new Map([from, to].map((shard) => [shard.number, shard])),
      commitTogether: () => options.together ?? true,
      isDurable: (kind) => kind !== tallyActor.contract.kind,
      deliver: (_, __, delivery) => void delivered.push(delivery),
      publish: (shard) => void published.push(shard),
    });
    direct.startKnowing(from);
    direct.startKnowing(to);
    const send = (...unsentOnes: ReturnType<typeof note>[]) => {
      const entries = from.outbox.number(unsentOnes);
      from.outbox.add(entries);
      direct.offer(from, entries);
      return entries;
    };
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    return { direct, from, to, delivered, published, asked, send, settled };
  }

  it("hands over no mail before it knows that MAIL is empty for the shard, and asks once", async () => {
    const { send, delivered, asked, settled } = build();
    send(note("to"));
    send(note("to"));
    expect(delivered).to.deep.equal([]);
    expect(asked).to.deep.equal([1]);
    await settled();
    // The first two notes will be published, so this note must follow them through MAIL.
    send(note("to"));
    expect(delivered).to.deep.equal([]);
  });

  it("hands over mail when MAIL is empty, and stops while MAIL holds unread mail of this owner", async () => {
    const { send, from, to, delivered, settled } = build();
    const [first] = send(note("to"));
    await settled();
    from.outbox.forget({ sent: first?.number ?? 0, waiting: [] });
    from.sends.published.set(to.number, 9);
    to.mail.read = 8;
    const [second] = send(note("to"));
    expect(delivered).to.have.length(0);
    from.outbox.forget({ sent: second?.number ?? 0, waiting: [] });
    to.mail.read = 9;
    send(note("to"));
    expect(delivered.map(({ input }) => input)).to.deep.equal([{ text: "to" }]);
  });

  it("does not use an answer from before MAIL may have got more", async () => {
    const { send, direct, from, delivered, settled } = build();
    const [first] = send(note("to"));
    await settled();
    from.outbox.forget({ sent: first?.number ?? 0, waiting: [] });
    direct.startKnowing(from);
    send(note("to"));
    expect(delivered).to.have.length(0);
  });

  it("does not take MAIL for empty if the bus does not say so", async () => {
    for (const next of [() => Promise.reject(new Error("away")), () => Promise.resolve({})]) {
      const { send, from, asked, delivered, settled } = build({ next });
      const [first] = send(note("to"));
      await settled();
      from.outbox.forget({ sent: first?.number ?? 0, waiting: [] });
      send(note("to"));
      expect(delivered).to.have.length(0);
      expect(asked).to.have.length(2);
    }
  });

  it("leaves mail for other hosts, for skipped mail and for other buckets to MAIL, and tasks too", async () => {
    const ways: [string, (built: ReturnType<typeof build>) => unknown, boolean][] = [
      ["all is well", () => {}, true],
      ["leaving", ({ to }) => Object.assign(to, { status: "leaving" }), false],
      ["its sender is leaving", ({ from }) => Object.assign(from, { status: "leaving" }), false],
      [
        "passed by",
        ({ to }) => void to.mail.passedBy.add(mailIn(0).to(to.number, "probe.to")),
        false,
      ],
    ];
    for (const [name, change, goes] of ways) {
      const built = build();
      built.to.mail.readAllSince = Number.POSITIVE_INFINITY;
      change(built);
      built.send(note("to"));
      expect(built.delivered, name).to.have.length(goes ? 1 : 0);
    }
    const apart = build({ together: false });
    apart.to.mail.readAllSince = Number.POSITIVE_INFINITY;
    apart.send(note("to"));
    const volatile = build();
    for (const shard of [volatile.from, volatile.to]) {
      shard.mail.readAllSince = Number.POSITIVE_INFINITY;
    }
    volatile.send(note("to", tallyActor.contract.kind));
    expect([...apart.delivered, ...volatile.delivered]).to.deep.equal([]);
  });

  it("hands over at most DIRECT_MAIL_MAX at a time", () => {
    const { send, direct, to, delivered } = build();
    to.mail.readAllSince = Number.POSITIVE_INFINITY;
    send(...Array.from({ length: DIRECT_MAIL_MAX - 1 }, () => note("to")));
    send(note("to"));
    expect(delivered).to.have.length(DIRECT_MAIL_MAX);
    const others = neighboursOf("to");
    send(note(others[0] ?? ""));
    expect(delivered).to.have.length(DIRECT_MAIL_MAX);
    direct.committed(delivered.slice(0, 1).flatMap((delivery) => delivery.direct ?? []));
    send(note(others[0] ?? ""), note(others[1] ?? ""), note(others[2] ?? ""));
    expect(delivered.map(({ input }) => input).slice(DIRECT_MAIL_MAX)).to.deep.equal([
      { text: others[1] },
    ]);
  });

  it("withdraws a mail with later mail to the same actor, and keeps earlier mail and that of others", () => {
    const { send, to, from, delivered, published } = build();
    to.mail.readAllSince = Number.POSITIVE_INFINITY;
    const entries = send(note("to"), note("to"), note("to"));
    delivered[1]?.direct?.giveUp(3);
    const statuses = delivered.map(({ direct }) => direct?.status);
    expect(statuses).to.deep.equal(["handed", "over", "over"]);
    expect(entries.map(({ tries }) => tries)).to.deep.equal([undefined, 3, undefined]);
    expect([...from.sends.direct.keys()]).to.deep.equal(entries.slice(0, 1));
    expect(published).to.deep.equal([from]);
    // Later notes must wait behind the notes that travel by MAIL.
    send(note("to"));
    expect(delivered).to.have.length(3);
  });

  it("withdraws no mail while its commit is being written", () => {
    const { send, direct, to, from, delivered, published } = build();
    to.mail.readAllSince = Number.POSITIVE_INFINITY;
    send(note("to"));
    const [sent] = delivered.flatMap((delivery) => delivery.direct ?? []);
    if (!sent) throw new Error("It was not handed over");
    direct.committing([sent]);
    to.status = "gone";
    direct.drop(to);
    expect([sent.status, published]).to.deep.equal(["committing", []]);
    direct.notCommitted([sent]);
    expect([sent.status, published, from.sends.direct.size]).to.deep.equal(["over", [from], 0]);
  });

  it("of a lost shard has no more effect here", () => {
    const { send, direct, to, from, delivered } = build();
    to.mail.readAllSince = Number.POSITIVE_INFINITY;
    send(note("to"));
    from.status = "gone";
    direct.drop(from);
    expect(delivered.map(({ direct }) => direct?.status)).to.deep.equal(["over"]);
    expect(from.sends.direct.size).to.equal(0);
  });
});
