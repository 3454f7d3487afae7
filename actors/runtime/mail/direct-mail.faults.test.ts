import type { Msg } from "@nats-io/transport-node";
import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { defineContract, envelope } from "../../../schemas/contract.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ActorHost } from "../actor-host.ts";
import { Bus } from "../bus/bus.ts";
import { defineActor } from "../kinds/define-actor.ts";
import { systemClock } from "../lib/clock.ts";
import { ServiceCounts } from "../observe/service-counts.ts";

const Nothing = z.object({});
const notary = defineContract({
  kind: "notary",
  messages: {
    post: { input: z.object({ to: z.array(z.string()), text: z.string() }), reply: Nothing },
    take: { input: z.object({ text: z.string() }) },
    get: { input: Nothing, reply: z.object({ log: z.array(z.string()) }) },
  },
});

const runs = new Map<string, number>();
const failing = new Set<string>();
let onTaken = (_: string) => {};

const notaryActor = defineActor(notary, {
  state: z.object({ log: z.array(z.string()) }),
  initial: { log: [] },
  handlers: {
    post: (state, { to, text }) => ({
      state,
      reply: {},
      send: to.map((key) => envelope(notary, key, "take", { text })),
    }),
    take(state, { text }, { key }) {
      const what = `${key} ${text}`;
      const count = (runs.get(what) ?? 0) + 1;
      runs.set(what, count);
      onTaken(what);
      // An end, should it be run for ever.
      if (failing.has(what) && count > 1 && count < 5_000) throw new Error("fails as asked");
      return { state: { log: [...state.log, text] } };
    },
    get: (state) => ({ state, reply: state }),
  },
});

describe("mail between actors of one host", function () {
  this.timeout(60_000);

  it("goes by MAIL if it fails in its second run, after a commit that the store refused", async () => {
    await using world = await startWorld({ definitions: [notaryActor] });
    const bus = await Bus.connect({ url: world.url, name: "host" });
    const shardOfKey = (key: string) => shardOf(addressOf("notary", key));
    expect(new Set(["a", "b", "x", "y"].map(shardOfKey)).size).to.equal(4);
    let isArmed = false;
    onTaken = (what) => {
      if (what === "x second b" && runs.get(what) === 1) isArmed = true;
    };
    const request = bus.request.bind(bus);
    bus.request = async (subject, ...rest) => {
      if (!isArmed || !subject.startsWith("journal.")) return request(subject, ...rest);
      isArmed = false;
      // Answers as a full store does.
      const error = { code: 400, err_code: 10077, description: "maximum bytes exceeded" };
      return { json: () => ({ error }) } as unknown as Msg;
    };
    const host = new ActorHost({
      ...{ bus, definitions: [notaryActor], hostName: "host", buckets: 1 },
      ...{ clock: systemClock, logger: pino({ level: "silent" }) },
      counts: new ServiceCounts(new Map()),
    });
    await host.start();
    await until("every shard is its own", () => host.placement.isComplete);
    const log = async (key: string) => (await world.client.call(notary, key, "get", {})).log;
    const post = (from: string, to: string[], text: string) =>
      world.client.call(notary, from, "post", { to, text: `${text} ${from}` });
    for (let number = 1; number <= 3; number++) {
      await Promise.all(["a", "b"].map((from) => post(from, ["x", "y"], `first ${number}`)));
      await until("they came", async () => {
        const logs = await Promise.all(["x", "y"].map(log));
        return logs.every((lines) => lines.length === 2 * number);
      });
    }
    const { stream, value } = world.subjects;
    const stored = async (key: string) => {
      const message = await world.bus.readLast(stream, value(addressOf("notary", key)));
      return message?.json<{ state: { log: string[] } }>().state.log.length;
    };
    // All values are in their keys, so loading an actor waits for no checkpoint.
    await until("both are written down", async () => {
      const lengths = await Promise.all(["x", "y"].map(stored));
      return lengths.every((length) => length === 6);
    });
    failing.add("x second b");
    const posted = Promise.allSettled([
      post("a", ["x"], "second"),
      post("b", ["x", "y"], "second"),
    ]);
    await until("it failed", () => (runs.get("x second b") ?? 0) >= 2);
    failing.clear();
    await posted;
    await until("all came", async () => (await log("x")).length === 8);
    expect([...(await log("x"))].slice(6).sort()).to.deep.equal(["second a", "second b"]);
    expect((await log("y")).slice(6)).to.deep.equal(["second b"]);
    expect(runs.get("x second b")).to.be.lessThan(20);
    await host.stop();
    await bus.close();
  });
});
