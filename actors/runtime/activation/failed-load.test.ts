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
import { Activations } from "./activations.ts";

/** Calls a counter whose load fails with `error`, and returns the answer. */
async function answerAfter(error: Error): Promise<Answer> {
  const activations = new Activations({
    definitions: [counterActor],
    clock: systemClock,
    logger: pino({ level: "silent" }),
    load: () => Promise.reject(error),
    markDirty: () => {},
    publishLive: () => {},
    confirm: () => Promise.resolve(true),
    answerRead: () => {},
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
  activations.forCall(shard, { kind: "counter", key: "a", address: "counter.a" }).call({
    message: "get",
    input: {},
    deadlineAt: systemClock.now() + 1_000,
    respond: (answer) => void answers.push(answer),
  });
  const answer = await until("an answer", () => answers[0]);
  expect(activations.count).to.equal(0);
  return answer;
}

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
