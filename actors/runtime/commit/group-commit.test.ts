import { expect } from "chai";
import pino from "pino";
import { BATCH_BYTES_MAX } from "../../../schemas/limits.ts";
import { addressOf } from "../../../schemas/subjects.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { counterActor } from "../../../scripts/testing/counter.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Activation } from "../activation/activation.ts";
import { systemClock } from "../lib/clock.ts";
import { DirectMail } from "../mail/direct-mail.ts";
import type { Answer } from "../shards/incoming.ts";
import { OUTBOX_BYTES_MAX, Outbox } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import { decodeActor } from "../state/stored-actor.ts";
import { GroupCommit } from "./group-commit.ts";

const logger = pino({ level: "silent" });
const nothing = () => {};
const message = { from: "probe.x", to: "actor", kind: "probe", key: "r", message: "note" };

describe("GroupCommit", function () {
  this.timeout(60_000);

  it("takes no more changes than fit into BATCH_BYTES_MAX, counting the outboxes that they rewrite", async () => {
    await using world = await startWorld();
    const { bus, subjects } = world;
    const text = "x".repeat(OUTBOX_BYTES_MAX - 10_000);
    const stored = JSON.stringify({ entries: [{ ...message, number: 1, input: { text } }] });
    const shards = new Map(
      Array.from({ length: 12 }, (_, number) => {
        const outbox = new Outbox(stored);
        const parts = { number, epoch: 1, host: "h", subjects, outbox, sentRevisions: [0] };
        return [number, new Shard(parts)] as const;
      }),
    );
    const directMail = new DirectMail({
      ...{ bus, logger, shards },
      commitTogether: () => true,
      isDurable: () => false,
      deliver: nothing,
      publish: nothing,
    });
    const shardOf = ({ shard }: Activation) => shards.get(shard);
    const host = { id: "h", directMail, shardOf, committed: nothing, startAnew: nothing };
    const commits = new GroupCommit({ bus, subjects, host, clock: systemClock, logger });
    await commits.journal.open("h");
    const sizes: number[] = [];
    const commit = commits.journal.commit.bind(commits.journal);
    commits.journal.commit = (entries, beside) => {
      const texts = entries.flatMap(({ puts }) => [...puts.values()]);
      sizes.push(texts.reduce((sum, one) => sum + (one?.length ?? 0), 0));
      return commit(entries, beside);
    };
    const answers: Answer[] = [];
    for (const { number } of shards.values()) giveFrom(number, commits, answers);
    await until("all are stored", () => answers.length === shards.size);
    expect(answers).to.deep.equal(Array.from(shards, () => ({ reply: '{"count":-1}' })));
    // The last change may exceed the limit, but no other one follows it.
    expect(Math.max(...sizes)).to.be.within(BATCH_BYTES_MAX, BATCH_BYTES_MAX + OUTBOX_BYTES_MAX);
    commits.journal.stop();
  });
});

/** Calls a counter of a shard so that it sends mail. */
function giveFrom(shard: number, commits: GroupCommit, answers: Answer[]): void {
  const key = `k${shard}`;
  const activation: Activation = new Activation(
    {
      ...{ clock: systemClock, logger },
      markDirty: () => commits.add(activation),
      publishLive: nothing,
      answerRead: nothing,
      bury: () => Promise.resolve(),
      restart: nothing,
    },
    { definition: counterActor, address: addressOf("counter", key), key, shard },
    { careful: false },
  );
  activation.start(decodeActor(counterActor, undefined, new Map()));
  activation.call({
    message: "give",
    input: { to: "r", by: 1 },
    deadlineAt: systemClock.now() + 60_000,
    respond: (answer) => void answers.push(answer),
  });
}
