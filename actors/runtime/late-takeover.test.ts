/** A host that takes a shard, stands still, and goes on when another host owns the shard. */
import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { defineContract, envelope } from "../../schemas/contract.ts";
import { LEASE_RENEW_MS } from "../../schemas/limits.ts";
import { addressOf, sentSubject, shardOf } from "../../schemas/subjects.ts";
import { type LogLine, startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { HoldingClock } from "../../scripts/testing/holding-clock.ts";
import { until } from "../../scripts/testing/until.ts";
import { ActorHost } from "./actor-host.ts";
import { Bus } from "./bus.ts";
import { type Clock, systemClock } from "./clock.ts";
import { defineActor } from "./define-actor.ts";
import { ServiceCounts } from "./service-counts.ts";

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

  it("publishes no mail that its next owner delivers within the host", async () => {
    await using world = await startWorld({ definitions: [notaryActor] });
    const shard = shardOf(addressOf("notary", "from"));
    const outbox = world.subjects.outbox(shard);
    const late = await startHost(world, "late", new HoldingClock(LEASE_RENEW_MS));
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

    const next = await startHost(world, "next", systemClock);
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

/** A host that writes every commit where it belongs, as on a replicated bus, and what it logs. */
async function startHost(world: World, hostName: string, clock: Clock) {
  const bus = await Bus.connect({ url: world.url, name: hostName });
  const log: LogLine[] = [];
  const write = (line: string) => void log.push(JSON.parse(line) as LogLine);
  const host = new ActorHost({
    ...{ bus, definitions: [notaryActor], hostName, replicas: 3, buckets: 1, clock },
    logger: pino({ level: "debug" }, { write }),
    counts: new ServiceCounts(new Map()),
  });
  return { bus, host, log };
}
