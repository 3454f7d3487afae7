import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { counterActor } from "../../../scripts/testing/counter.ts";
import { until } from "../../../scripts/testing/until.ts";
import { BusLost } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import type { Answer } from "../shards/incoming.ts";
import { Outbox } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import { decodeActor } from "../state/stored-actor.ts";
import { Activations, type ActivationsParts } from "./activations.ts";

/** Calls counters that `load` loads. Their answers come in the order in which they are given. */
function callCounters(load: ActivationsParts["load"], keys: readonly string[]) {
  const activations = new Activations({
    definitions: [counterActor],
    clock: systemClock,
    logger: pino({ level: "silent" }),
    load,
    markDirty: () => {},
    publishLive: () => {},
    confirm: () => Promise.resolve(true),
    answerRead: (_, respond, answer) => respond(answer),
    bury: () => Promise.resolve(),
  });
  const shard = new Shard({
    number: 0,
    epoch: 1,
    host: "test",
    subjects: stateSubjects(stateBucket(0)),
    outbox: new Outbox(undefined),
    sentRevisions: [0],
  });
  const answers: Answer[] = [];
  for (const key of keys) {
    activations.forCall(shard, { kind: "counter", key, address: `counter.${key}` }).call({
      message: "get",
      input: {},
      deadlineAt: systemClock.now() + 1_000,
      respond: (answer) => void answers.push(answer),
    });
  }
  return { activations, answers };
}

/** Calls a counter whose load fails with `error`, and returns the answer. */
async function answerAfter(error: Error): Promise<Answer> {
  const { activations, answers } = callCounters(() => Promise.reject(error), ["a"]);
  const answer = await until("an answer", () => answers[0]);
  expect(activations.count).to.equal(0);
  return answer;
}

describe("an actor that loads for long", () => {
  it("delays the load of no other actor, whatever their number", async () => {
    const slow = Array.from({ length: 200 }, (_, index) => `slow-${index}`);
    const load: ActivationsParts["load"] = (_, definition, address) =>
      address === "counter.quick"
        ? Promise.resolve(decodeActor(definition, undefined, new Map()))
        : new Promise(() => {});
    const { answers } = callCounters(load, [...slow, "quick"]);
    await until("the other's answer", () => answers.length > 0);
    expect(answers).to.deep.equal([{ reply: '{"count":0}' }]);
  });
});

describe("an actor that cannot be loaded", () => {
  it("makes its callers retry while the bus is away", async () => {
    expect(await answerAfter(new BusLost("away"))).to.deep.equal({ misdirected: true });
  });

  it("refuses its callers if the stored value cannot be read", async () => {
    const { error } = z.number().safeParse("x");
    if (!error) throw new Error("Cannot test: the schema took it");
    const answer = await answerAfter(error);
    expect(answer).to.have.nested.property("refusal.code", "unavailable");
  });
});
