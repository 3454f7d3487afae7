/** Tests a host that still acts as the owner of lost shards, because it was suspended or has just lost its lease. */

import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { defineContract, envelope } from "../../../schemas/contract.ts";
import { CHECKPOINT_MS, SHARDS } from "../../../schemas/limits.ts";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { type LogLine, startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { HoldingClock } from "../../../scripts/testing/holding-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ActorHost, type ActorHostParts } from "../actor-host.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
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
      if (subject === outbox || subject === mailIn(0).sent(shard)) {
        isOpening.resolve();
        await mayRead.promise;
      }
      return readLast(stream, subject);
    };
    await late.host.start();
    await isOpening.promise;
    // Blocks renewals of the late host's lease. Otherwise a read would renew the lease, and the host would get some
    // of its shards back.
    const requestOfLate = late.bus.request.bind(late.bus);
    late.bus.request = async (subject, ...rest) => {
      if (subject === world.subjects.lease(late.host.placement.hostId)) throw new Error("Held");
      return requestOfLate(subject, ...rest);
    };

    const next = await startHost(world, "next", { ...parts, clock: systemClock });
    await next.host.start();
    await until("the next host owns every shard", () => next.host.placement.openShards === SHARDS);
    const log = async () => (await world.client.call(notary, "to", "get", {})).log;
    const post = (text: string) => world.client.call(notary, "from", "post", { to: "to", text });
    // The first mail goes by MAIL: until then the host does not know whether MAIL holds more of the sender.
    for (const text of ["first", "second", "third"]) {
      await post(text);
      await until(`${text} came`, async () => (await log()).includes(text));
    }

    // The commit of the post holds the outbox; the commit of its effect holds the outbox without the mail.
    const [isCommitting, mayCommit] = [
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
    ];
    let outboxWrites = 0;
    const request = next.bus.request.bind(next.bus);
    next.bus.request = async (subject, payload, ...rest) => {
      const isOfJournal = subject === world.subjects.journal(next.host.placement.hostId);
      if (isOfJournal && String(payload).includes(`"outbox.${shard}"`)) outboxWrites += 1;
      if (isOfJournal && outboxWrites === 2) {
        isCommitting.resolve();
        await mayCommit.promise;
      }
      return request(subject, payload, ...rest);
    };
    await post("fourth");
    await isCommitting.promise;
    await until("a checkpoint has brought it to its key", async () => {
      const stored = await world.bus.readLast(world.subjects.stream, outbox);
      return stored?.string().includes("fourth");
    });
    mayRead.resolve();
    const isOver = ({ msg, shard: number }: LogLine) =>
      number === shard && ["shard not taken", "shard dropped"].includes(msg);
    await until("the late host has lost the shard", () => late.log.some(isOver));
    // Everything that the late host published is on the bus.
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

describe("a host whose journal another host has sealed", function () {
  this.timeout(120_000);

  it("detects the seal at its next commit, and continues under another name with all commits", async () => {
    await using world = await startWorld();
    const { bus, host, log } = await startHost(world, "host", {
      definitions: [counterActor],
      // With this clock no checkpoint runs, so committed values are only in the journal.
      clock: new HoldingClock(CHECKPOINT_MS),
    });
    await host.start();
    await until("it owns every shard", () => host.placement.isComplete);
    const { hostId } = host.placement;
    await world.client.call(counter, "a", "setRows", { rows: { one: 1 } });
    await world.client.call(counter, "b", "increment", { by: 1 });
    const { journal, journalStream } = world.subjects;
    const seal = { subject: journal(hostId), payload: JSON.stringify({ sealedBy: "another" }) };
    await writeAtomically(world.bus, [seal]);
    const counts = await Promise.all(
      ["a", "b"].map((key) => world.client.call(counter, key, "increment", { by: 1 })),
    );
    expect(counts.map(({ count }) => count)).to.deep.equal([1, 2]);
    const { rows } = await world.client.call(counter, "a", "getRows", {});
    expect(rows).to.deep.equal({ one: 1 });
    expect(host.placement.hostId).to.not.equal(hostId);
    expect(log.filter(({ msg }) => msg.startsWith("journal lost"))).to.have.length(1);
    await until("nobody keeps its former journal", async () => {
      const names = await world.bus.subjectsOf(journalStream, journal("*"));
      return !names.includes(journal(hostId));
    });
    await host.stop();
    await bus.close();
  });

  it("answers no call whose commit was refused, and no read of its changes", async () => {
    await using world = await startWorld();
    const first = await startHost(world, "first", {
      definitions: [counterActor],
      clock: systemClock,
    });
    await first.host.start();
    await until("it owns every shard", () => first.host.placement.isComplete);
    await world.client.call(counter, "a", "increment", { by: 1 });
    // Simulates a host that stalls before its commit while the next host takes its shards.
    const subject = world.subjects.journal(first.host.placement.hostId);
    const request = first.bus.request.bind(first.bus);
    const [isCommitting, mayCommit] = [
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
    ];
    first.bus.request = async (to, ...rest) => {
      if (to === subject) {
        isCommitting.resolve();
        await mayCommit.promise;
      }
      return request(to, ...rest);
    };
    const increment = world.client.call(counter, "a", "increment", { by: 1 });
    await isCommitting.promise;
    const read = world.client.call(counter, "a", "get", {});
    const seal = { subject, payload: JSON.stringify({ sealedBy: "another" }) };
    await writeAtomically(world.bus, [seal]);
    let isAnswered = false;
    void Promise.race([increment, read]).then(() => {
      isAnswered = true;
    });
    await world.bus.connection.flush();
    expect(isAnswered).to.equal(false);
    mayCommit.resolve();
    expect((await increment).count).to.equal(2);
    expect([1, 2]).to.include((await read).count);
    expect((await world.client.call(counter, "a", "get", {})).count).to.equal(2);
    await first.host.stop();
    await first.bus.close();
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
