import { expect } from "chai";
import pino from "pino";
import { counterActor } from "../../../scripts/testing/counter.ts";
import { systemClock } from "../lib/clock.ts";
import type { Answer, IncomingCall } from "../shards/incoming.ts";
import { decodeActor } from "../state/stored-actor.ts";
import { Activation } from "./activation.ts";

/**
 * Starts an activation of a counter. `reads` holds the answers that wait until the ownership of the shard is
 * verified.
 */
function startCounter() {
  const reads: Answer[] = [];
  const answers: Answer[] = [];
  let confirm: (isOwner: boolean) => void = () => {};
  const activation = new Activation(
    {
      clock: systemClock,
      logger: pino({ level: "silent" }),
      markDirty: () => {},
      publishLive: () => {},
      answerRead: (respond, answer) => {
        reads.push(answer);
        confirm = (isOwner) => respond(isOwner ? answer : { misdirected: true });
      },
      bury: () => Promise.resolve(),
      restart: () => {},
    },
    { definition: counterActor, address: "counter.a", key: "a", shard: 0 },
    { careful: false },
  );
  activation.start(decodeActor(counterActor, undefined, new Map()));
  const call = (message: string, input: object, fields: Partial<IncomingCall> = {}) => {
    const respond = (answer: Answer) => void answers.push(answer);
    const deadlineAt = systemClock.now() + 1_000;
    activation.call({ message, input, deadlineAt, respond, ...fields });
  };
  return { activation, call, reads, answers, confirm: (isOwner: boolean) => confirm(isOwner) };
}

const one = { reply: '{"count":1}' };

describe("Activation", () => {
  it("committed() answers the calls that came before the commit began", () => {
    const { activation, call, reads, answers } = startCounter();
    call("increment", { by: 1 });
    call("get", {});
    activation.takeChange();
    expect(answers).to.deep.equal([]);
    activation.committed();
    expect(answers).to.deep.equal([one, one]);
    expect(reads).to.deep.equal([]);
  });

  it("committed() does not prove to a later read that the shard is still owned", () => {
    const { activation, call, reads, answers } = startCounter();
    call("increment", { by: 1 });
    activation.takeChange();
    call("get", {});
    expect(reads).to.deep.equal([]);
    activation.committed();
    expect(answers).to.deep.equal([one]);
    expect(reads).to.deep.equal([one]);
  });

  it("call() gives a kept reply also after the deadline, and runs no other call then", () => {
    const { activation, call, reads, answers } = startCounter();
    const id = { client: "c", number: 1, settled: 1 };
    call("increment", { by: 1 }, { id });
    activation.takeChange();
    activation.committed();
    call("increment", { by: 1 }, { id, deadlineAt: 0 });
    call("increment", { by: 1 }, { id: { ...id, number: 2 }, deadlineAt: 0 });
    expect(answers).to.deep.equal([one, { misdirected: true, isLate: true }]);
    expect(reads).to.deep.equal([one]);
  });

  it("deliver() settles a reminder that its state does not know only where the shard is still owned", () => {
    const { activation, answers, confirm } = startCounter();
    let settled = 0;
    const done = () => {
      settled += 1;
    };
    for (const [isOwner, count] of [
      [false, 0],
      [true, 1],
    ] as const) {
      activation.deliver({ message: "tick", input: {}, dueAt: 1, tries: 0, done });
      expect(settled).to.equal(0);
      confirm(isOwner);
      expect(settled).to.equal(count);
    }
    expect(answers).to.deep.equal([]);
  });

  it("end() redirects the callers of a running commit, and callers that come later", () => {
    const { activation, call, answers } = startCounter();
    call("increment", { by: 1 });
    activation.takeChange();
    call("get", {});
    activation.end();
    expect(answers).to.deep.equal([{ misdirected: true }, { misdirected: true }]);
  });
});
