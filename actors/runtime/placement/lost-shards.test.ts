/** A host that goes on as if its shards were its own: it stood still, or has just lost its lease. */

import { headers } from "@nats-io/transport-node";
import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { defineContract, envelope } from "../../../schemas/contract.ts";
import { CHECKPOINT_MS, SHARDS } from "../../../schemas/limits.ts";
import { addressOf, sentSubject, shardOf } from "../../../schemas/subjects.ts";
import { type LogLine, startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { HoldingClock } from "../../../scripts/testing/holding-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ActorHost, type ActorHostParts } from "../actor-host.ts";
import { Bus } from "../bus/bus.ts";
import { defineActor } from "../kinds/define-actor.ts";
import { systemClock } from "../lib/clock.ts";
import { ServiceCounts } from "../observe/service-counts.ts";
import { LEASE_RENEW_MS } from "./host-lease.ts";

const Nothing = z.object({});
const notary = defineContract({
  kind: "notary",
  messages: {
    post: { input: z.object({ to: z.string(), text: z.string() }), reply: Nothing },
    take: { input: z.object({ text: z.string() }) },
    get: { input: Nothing, reply: z.object({ log: z.array(z.string()) }) },
  },
});
const notaryActor = defineActor(notary, {
  state: z.object({ log: z.array(z.string()) }),
  initial: { log: [] },
  handlers: {
    post: (state, { to, text }) => ({
      state,
      reply: {},
      send: [envelope(notary, to, "take", { text })],
    }),
    take: (state, { text }) => ({ state: { log: [...state.log, text] } }),
    get: (state) => ({ state, reply: state }),
  },
});

describe("a shard that is taken late", function () {
  this.timeout(120_000);

  it("publishes no mail that its next owner delivers within its host", async () => {
    await using world = await startWorld({ definitions: [notaryActor] });
    const shard = shardOf(addressOf("notary", "from"));
    const outbox = world.subjects.outbox(shard);
    const parts = { definitions: [notaryActor] };
    const clock = new HoldingClock(LEASE_RENEW_MS);
    const late = await startHost(world, "late", { ...parts, clock });
    const [isOpening, mayRead] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const readLast = late.bus.readLast.bind(late.bus);
    late.bus.readLast = async (stream, subject) => {
      if (subject === outbox || subject === sentSubject(shard)) {
        isOpening.resolve();
        await mayRead.promise;
      }
      return readLast(stream, subject);
    };
    await late.host.start();
    await isOpening.promise;

    const next = await startHost(world, "next", { ...parts, clock: systemClock });
    await next.host.start();
    await until("the next host owns every shard", () => next.host.placement.isComplete);
    const log = async () => (await world.client.call(notary, "to", "get", {})).log;
    const post = (text: string) => world.client.call(notary, "from", "post", { to: "to", text });
    // The first mail goes by MAIL: until then the host does not know whether MAIL holds more of the sender.
    for (const text of ["first", "second", "third"]) {
      await post(text);
      await until(`${text} came`, async () => (await log()).includes(text));
    }

    // The commit of the post writes the outbox; the commit of its effect writes the outbox without the mail.
    const [isCommitting, mayCommit] = [
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
    ];
    let outboxWrites = 0;
    const request = next.bus.request.bind(next.bus);
    next.bus.request = async (subject, ...rest) => {
      if (subject === outbox) outboxWrites += 1;
      if (subject === outbox && outboxWrites === 2) {
        isCommitting.resolve();
        await mayCommit.promise;
      }
      return request(subject, ...rest);
    };
    await post("fourth");
    await isCommitting.promise;
    mayRead.resolve();
    const isOver = ({ msg, shard: number }: LogLine) =>
      number === shard && ["shard not taken", "shard dropped"].includes(msg);
    await until("the late host has lost the shard", () => late.log.some(isOver));
    // All that the late host published is on the bus.
    await late.bus.close();
    mayCommit.resolve();
    await until("fourth came", async () => (await log()).includes("fourth"));
    await until("all mail is read", async () => (await world.mailWaiting()) === 0);
    expect(await log()).to.deep.equal(["first", "second", "third", "fourth"]);
    await late.host.stop();
    await next.host.stop();
    await next.bus.close();
  });
});

describe("a commit whose journal is refused while the host loses its lease", function () {
  this.timeout(120_000);

  it("leaves no pending changes of its actors behind", async () => {
    await using world = await startWorld();
    const { bus, host } = await startHost(world, "host", {
      definitions: [counterActor],
      // Only the journal holds what is committed.
      clock: new HoldingClock(CHECKPOINT_MS),
    });
    await host.start();
    await until("it owns every shard", () => host.placement.isComplete);
    await world.client.call(counter, "a", "setRows", { rows: { one: 1 } });

    const shard = shardOf(addressOf("counter", "a"));
    const { epoch, lease } = world.subjects;
    const jetstream = world.bus.jetstream.jetstream();
    const request = bus.request.bind(bus);
    const isAnswered = Promise.withResolvers<void>();
    let isArmed = true;
    bus.request = async (subject, ...rest) => {
      if (subject === epoch(shard)) await isAnswered.promise;
      if (!isArmed || !/journal\.[^.]+\.\d+$/.test(subject)) return request(subject, ...rest);
      isArmed = false;
      const { hostId } = host.placement;
      const ghost = JSON.stringify({ host: null, journals: [hostId] });
      await jetstream.publish(epoch((shard + 1) % SHARDS), ghost);
      const removed = headers();
      removed.set("KV-Operation", "DEL");
      await jetstream.publish(lease(hostId), "", { headers: removed });
      await until("the lease is lost", () => host.placement.hostId !== hostId);
      const refusal = await request(subject, ...rest);
      // After all that follows the refusal in the same turn of the loop.
      setImmediate(isAnswered.resolve);
      return refusal;
    };
    const { count } = await world.client.call(counter, "a", "increment", { by: 1 });
    expect(count).to.equal(1);
    const { rows } = await world.client.call(counter, "a", "getRows", {});
    expect(rows).to.deep.equal({ one: 1 });
    await host.stop();
    await bus.close();
  });
});

/** A host with a connection of its own, and what it logs. */
async function startHost(
  world: World,
  hostName: string,
  parts: Pick<ActorHostParts, "definitions" | "clock">,
) {
  const bus = await Bus.connect({ url: world.url, name: hostName });
  const log: LogLine[] = [];
  const write = (line: string) => void log.push(JSON.parse(line) as LogLine);
  const host = new ActorHost({
    ...{ bus, hostName, buckets: 1, ...parts },
    logger: pino({ level: "debug" }, { write }),
    counts: new ServiceCounts(new Map()),
  });
  return { bus, host, log };
}
