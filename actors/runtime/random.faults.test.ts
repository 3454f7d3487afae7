/**
 * Tests calls and mail in random order. Messages are sent twice, too late, again after a lost answer, or to handlers
 * that fail, and hosts end at any step.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import pino from "pino";
import { callSubject, shardOf } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../scripts/testing/counter.ts";
import { ledger, ledgerActor } from "../../scripts/testing/ledger.ts";
import { findViolation, type Operation } from "../../scripts/testing/linearizability.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import { until } from "../../scripts/testing/until.ts";
import { ActorHost } from "./actor-host.ts";
import { Bus } from "./bus/bus.ts";
import type { CallMessage } from "./calls/call-wire.ts";
import { systemClock } from "./lib/clock.ts";
import { ServiceCounts } from "./observe/service-counts.ts";

const CLIENTS = 12;
const CALLS_PER_CLIENT = 40;
const KEYS = ["a", "b", "c", "d"];
/**
 * Limits the hosts that break, because a disconnected host keeps its shards from the other hosts until its lease
 * ends.
 */
const HOSTS_BROKEN = 6;
const TRY_MS = 250;
/** Longer than all broken hosts together can keep a shard from a call. */
const CALL_MS_MAX = 60_000;

/** A client that numbers its calls as our clients do, and sends each call a random number of times. */
class RepeatingClient {
  readonly #bus: Bus;
  readonly #random: SeededRandom;
  readonly #id = randomBytes(6).toString("hex");
  /** Earlier calls that are answered, to be sent once more. */
  readonly #late: { subject: string; payload: string }[] = [];
  #lastNumber = 0;

  constructor(bus: Bus, random: SeededRandom) {
    this.#bus = bus;
    this.#random = random;
  }

  async call(address: string, message: string, input: unknown): Promise<Record<string, number>> {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const subject = callSubject(shardOf(address), address);
    const deadlineAt = Date.now() + CALL_MS_MAX;
    const call: CallMessage = {
      message,
      input,
      client: this.#id,
      number,
      settled: number,
      deadlineAt,
    };
    const payload = JSON.stringify(call);
    const reply = await this.#untilAnswered(subject, payload);
    this.#late.push({ subject, payload });
    if (this.#random.chance(0.3)) {
      const echo = this.#random.pick(this.#late);
      this.#bus.connection.publish(echo.subject, echo.payload);
    }
    return reply;
  }

  /**
   * Sends a call repeatedly until it is answered. Sometimes sends two copies at the same time, and sometimes ignores
   * the first answer.
   */
  async #untilAnswered(subject: string, payload: string): Promise<Record<string, number>> {
    let ignored = this.#random.chance(0.2) ? 1 : 0;
    const look = async () => {
      const tries = this.#random.chance(0.3) ? 2 : 1;
      const asked = Array.from({ length: tries }, () => this.#ask(subject, payload));
      const [answer] = (await Promise.all(asked)).filter((one) => one !== undefined);
      if (answer === undefined) return undefined;
      ignored -= 1;
      return ignored >= 0 ? undefined : answer;
    };
    return until(`an answer from ${subject}`, look, CALL_MS_MAX);
  }

  /** Returns undefined if nobody answered, or if the answer refers the caller to another host. */
  async #ask(subject: string, payload: string): Promise<Record<string, number> | undefined> {
    try {
      const answer = await this.#bus.request(subject, payload, { timeoutMs: TRY_MS });
      return answer.headers ? undefined : answer.json<Record<string, number>>();
    } catch {
      return undefined; // Nobody there, or lost: it is asked again.
    }
  }
}

const model = {
  initial: 0,
  step(count: number, by: number, output: number | undefined) {
    return output === undefined || output === count + by ? count + by : undefined;
  },
};

describe("actors under random messages", function () {
  this.timeout(240_000);

  for (const round of [1, 2]) {
    it(`every call has its effect once, although messages come twice, late or never (${round})`, async () => {
      const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
      console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
      const random = new SeededRandom(seed);
      await using world = await startWorld({ definitions: [counterActor, ledgerActor] });
      await world.host({ name: "stays" });
      const clientBus = await Bus.connect({ url: world.url, name: "clients" });
      const history: Operation<number, number>[] = [];
      let done = false;
      const clients = Array.from({ length: CLIENTS }, (_, index) =>
        runClient(index, new RepeatingClient(clientBus, random.fork()), random.fork(), history),
      );
      const working = Promise.all(clients).finally(() => {
        done = true;
      });
      await Promise.all([working, breakHosts(world, random.fork(), () => done)]);
      await checkEffects(world, history);
      await clientBus.close();
    });
  }
});

async function runClient(
  index: number,
  client: RepeatingClient,
  random: SeededRandom,
  history: Operation<number, number>[],
): Promise<void> {
  for (let count = 0; count < CALLS_PER_CLIENT; count++) {
    const key = random.pick(KEYS);
    const startedAt = performance.now();
    if (random.chance(0.4)) {
      const input = { to: random.pick(KEYS), stumbles: random.chance(0.1) ? 1 : 0 };
      const reply = await client.call(`ledger.${key}-${index}`, "post", input);
      expect(reply.number).to.be.a("number");
      const at = performance.now();
      const operation = { key: `ledger.${key}-${index}>${input.to}`, input: 1, startedAt };
      history.push({ ...operation, ended: { at, output: reply.number ?? 0 } });
      continue;
    }
    const by = random.chance(0.4) ? 0 : random.integer(1, 9);
    const reply =
      by === 0
        ? await client.call(`counter.${key}`, "get", {})
        : await client.call(`counter.${key}`, "increment", { by });
    const at = performance.now();
    history.push({
      key: `counter.${key}`,
      input: by,
      startedAt,
      ended: { at, output: reply.count ?? Number.NaN },
    });
  }
}

/** Starts and stops hosts, and closes the connections of hosts in the middle of their work. */
async function breakHosts(world: World, random: SeededRandom, done: () => boolean): Promise<void> {
  for (let hosts = 0; hosts < HOSTS_BROKEN && !done(); hosts++) {
    const bus = await Bus.connect({ url: world.url, name: "goes" });
    const host = new ActorHost({
      bus,
      definitions: [counterActor, ledgerActor],
      hostName: "goes",
      buckets: 1,
      clock: systemClock,
      logger: pino({ level: "silent" }),
      counts: new ServiceCounts(new Map()),
    });
    await host.start();
    await until("it has worked for a while", () => done() || random.chance(0.01));
    if (random.chance(0.5)) await bus.connection.close();
    await host.stop();
    await bus.close();
  }
}

async function checkEffects(world: World, history: Operation<number, number>[]): Promise<void> {
  expect(findViolation(model, history)).to.equal(undefined);
  const read = (key: string) => world.client.call(ledger, key, "read", {});
  const posted = (key: string) =>
    history.filter((one) => one.key.startsWith("ledger.") && one.key.endsWith(`>${key}`));
  // A disconnected host keeps its shards, and the mail that their actors have not sent yet, until its lease ends.
  for (const key of KEYS) {
    await until(`all that was posted to ${key} is there`, async () => {
      const { received } = await read(key);
      return Object.values(received).reduce((sum, count) => sum + count, 0) >= posted(key).length;
    });
  }
  await until("all mail is read", async () => (await world.mailWaiting()) === 0);
  for (const key of KEYS) {
    const { received, faults } = await read(key);
    expect(faults).to.deep.equal([]);
    const bySender = Map.groupBy(posted(key), (one) =>
      one.key.slice("ledger.".length, one.key.indexOf(">")),
    );
    const counts = [...bySender].map(([from, operations]) => [from, operations.length] as const);
    expect(received).to.deep.equal(Object.fromEntries(counts));
    const sum = history
      .filter((one) => one.key === `counter.${key}`)
      .reduce((total, { input }) => total + input, 0);
    expect(await world.client.call(counter, key, "get", {})).to.deep.equal({ count: sum });
  }
}
