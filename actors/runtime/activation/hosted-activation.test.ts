import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { defineContract } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { MAIL_RETRY_MS, MAIL_TRIES_MAX, MAILBOX_MAX } from "../../../schemas/limits.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import { BusLost } from "../bus/bus.ts";
import type { HostedContext, HostedInstance, HostedMessage } from "../kinds/define-hosted.ts";
import { type Answer, type Delivery, HOSTED_MAIL_MS_MAX } from "../shards/incoming.ts";
import { HostedActivation } from "./hosted-activation.ts";

const Text = z.object({ text: z.string() });
const guest = defineContract({
  kind: "guest",
  messages: { say: { input: Text, reply: Text }, hear: { input: Text }, wake: { input: Text } },
});
type Guest = (typeof guest)["messages"];

type Opening = { context: HostedContext } & PromiseWithResolvers<HostedInstance<Guest>>;
type Received = HostedMessage<Guest> & PromiseWithResolvers<unknown>;

/** A hosted activation whose openings, messages and closings wait until the test resolves them. */
class Scene {
  readonly clock = new SkippingClock();
  readonly openings: Opening[] = [];
  readonly received: Received[] = [];
  readonly closings: (PromiseWithResolvers<void> & { signal: AbortSignal })[] = [];
  readonly buried: string[] = [];
  forgotten = 0;
  owned = true;
  isBusy = false;
  idleMs: number | undefined;
  mayRepeat = true;
  readonly told: string[] = [];
  readonly activation: HostedActivation;
  #number = 0;

  constructor() {
    this.activation = new HostedActivation(
      {
        clock: this.clock,
        logger: pino({ level: "silent" }),
        confirm: async () => this.owned,
        answerRead: (respond, answer) => respond(this.owned ? answer : { misdirected: true }),
        bury: async ({ message }, error) => void this.buried.push(`${message}: ${error.message}`),
        forget: () => {
          this.forgotten += 1;
        },
      },
      {
        address: "guest.a",
        key: "a",
        definition: {
          contract: guest,
          idleMs: 1_000,
          open: (_, context) => {
            const opening = { context, ...Promise.withResolvers<HostedInstance<Guest>>() };
            this.openings.push(opening);
            return opening.promise;
          },
          refused: async (key, { message, input }, error) => {
            const { text } = input as { text: string };
            this.told.push(`${key} ${message} ${text}: ${error.message}`);
            if (text === "fails") throw new Error("cannot tell");
            return text === "told";
          },
        },
      },
    );
  }

  instance(): HostedInstance<Guest> {
    const { received, closings } = this;
    const isBusy = () => this.isBusy;
    const idleMs = () => this.idleMs;
    return {
      receive(message) {
        const one = { ...message, ...Promise.withResolvers<unknown>() };
        received.push(one);
        return one.promise;
      },
      get isBusy() {
        return isBusy();
      },
      get idleMs() {
        return idleMs();
      },
      mayRepeat: () => this.mayRepeat,
      close(signal) {
        const closing = { signal, ...Promise.withResolvers<void>() };
        closings.push(closing);
        return closing.promise;
      },
    };
  }

  /** Sends a call. Returns a list to which each answer is added when it arrives. */
  call(
    text: unknown,
    id?: { number: number; settled?: number },
    message = "say",
    deadlineAt = this.clock.now() + 5_000,
  ): Answer[] {
    const answers: Answer[] = [];
    this.activation.call({
      message,
      input: { text },
      id: { client: "c", settled: 1, number: id?.number ?? 1_000 + ++this.#number, ...id },
      deadlineAt,
      respond: (answer) => void answers.push(answer),
    });
    return answers;
  }

  deliver(text: unknown, sequence: number, message = "hear"): { done: number } {
    const delivered = { done: 0 };
    const delivery: Delivery = {
      message,
      input: { text },
      sequence,
      tries: 0,
      done() {
        delivered.done += 1;
      },
    };
    this.activation.deliver(delivery);
    return delivered;
  }

  async opened(number = 1): Promise<Opening> {
    const opening = await until("it is opened", () => this.openings[number - 1]);
    opening.resolve(this.instance());
    return opening;
  }

  message(number: number): Promise<Received> {
    return until(`message ${number} has come`, () => this.received[number - 1]);
  }

  texts(): string[] {
    return this.received.map(({ input }) => input.text);
  }
}

describe("HostedActivation", () => {
  it("opens once for calls and mail that arrive meanwhile, and passes them on in order", async () => {
    const scene = new Scene();
    const answers = ["a", "b", "c"].map((text) => scene.call(text));
    const first = scene.deliver("m1", 1);
    scene.deliver("m2", 2);
    expect(scene.received).to.have.length(0);
    const { context } = await scene.opened();
    await scene.message(4);
    expect(scene.texts()).to.deep.equal(["a", "b", "c", "m1"]);
    expect(context.hasOtherMail()).to.equal(false);
    scene.deliver("w", 3, "wake");
    expect(context.hasOtherMail()).to.equal(true);
    // Calls run in parallel. Mail is handled one message after the other.
    scene.received[1]?.resolve({ text: "B", more: "stays inside" });
    await until("the second is answered", () => answers[1]?.length === 1);
    expect(answers[1]).to.deep.equal([{ reply: '{"text":"B"}' }]);
    expect(answers[0]).to.deep.equal([]);
    scene.received[3]?.resolve(undefined);
    await scene.message(5);
    expect(first.done).to.equal(1);
    expect(scene.texts()[4]).to.equal("m2");
    expect(context.hasOtherMail()).to.equal(true);
    scene.received[4]?.resolve(undefined);
    await scene.message(6);
    expect(context.hasOtherMail()).to.equal(false);
    expect(scene.received[3]?.id).to.equal("mail-1");
    expect(scene.openings).to.have.length(1);
  });

  it("refuses unknown messages, invalid inputs and what the instance refuses, and hides faults", async () => {
    const scene = new Scene();
    const unread = scene.call(1);
    const unknown = scene.call("x", undefined, "toString");
    const [refused, broken, wrong] = ["r", "b", "w"].map((text) => scene.call(text));
    await scene.opened();
    (await scene.message(1)).reject(new ActorError("conflict", "Cannot say: no"));
    (await scene.message(2)).reject(new Error("secret"));
    (await scene.message(3)).resolve({ text: 7 });
    const codes = [];
    for (const answers of [unread, unknown, refused, broken, wrong]) {
      const answer = await until("an answer", () => answers?.[0]);
      codes.push("refusal" in answer ? answer.refusal.code : answer);
      expect(JSON.stringify(answer)).not.to.contain("secret");
    }
    expect(codes).to.deep.equal([
      "invalid_request",
      "invalid_request",
      "conflict",
      "internal_error",
      "internal_error",
    ]);
  });

  it("passes on a call's id, runs no copy of a call, and answers copies until the call is settled", async () => {
    const scene = new Scene();
    const one = scene.call("a", { number: 7 });
    await scene.opened();
    const copy = scene.call("a", { number: 7 });
    const { id, resolve } = await scene.message(1);
    expect(id).to.equal("c.7");
    resolve({ text: "A" });
    await until("both are answered", () => one.length + copy.length === 2);
    expect(copy).to.deep.equal(one);
    // The client has sent this copy before it received the answer.
    expect(scene.call("a", { number: 7 })).to.deep.equal(one);
    scene.owned = false;
    expect(scene.call("a", { number: 7 })).to.deep.equal([{ misdirected: true }]);
    scene.owned = true;
    scene.call("b", { number: 9, settled: 8 });
    expect(scene.call("a", { number: 7 })).to.deep.equal([{ dropped: true }]);
    expect(scene.texts()).to.deep.equal(["a", "b"]);
  });

  it("answers copies after their deadline, also of a running call, and runs no other call then", async () => {
    const scene = new Scene();
    const one = scene.call("a", { number: 7 });
    await scene.opened();
    const { resolve } = await scene.message(1);
    const copy = scene.call("a", { number: 7 }, "say", 0);
    resolve({ text: "A" });
    await until("both are answered", () => one.length + copy.length === 2);
    expect(copy).to.deep.equal(one);
    expect(scene.call("a", { number: 7 }, "say", 0)).to.deep.equal(one);
    const late = [{ misdirected: true, isLate: true }];
    expect(scene.call("b", { number: 8 }, "say", 0)).to.deep.equal(late);
    expect(scene.texts()).to.deep.equal(["a"]);
  });

  it("runs a copy of a call that it refused with a temporary error", async () => {
    const scene = new Scene();
    const refused = scene.call("a", { number: 7 });
    await scene.opened();
    (await scene.message(1)).reject(new ActorError("busy", "Cannot say: full"));
    await until("it is refused", () => refused.length === 1);
    scene.call("a", { number: 7 });
    expect((await scene.message(2)).id).to.equal("c.7");
  });

  it("takes MAILBOX_MAX calls and refuses one more, also while it opens", async () => {
    const scene = new Scene();
    const answers = Array.from({ length: MAILBOX_MAX + 1 }, () => scene.call("x"));
    expect(answers.at(-1)?.[0]).to.have.nested.property("refusal.code", "busy");
    await scene.opened();
    await scene.message(MAILBOX_MAX);
    expect(scene.call("x")[0]).to.have.nested.property("refusal.code", "busy");
    scene.received[0]?.resolve({ text: "" });
    await until("there is room", () => answers[0]?.length === 1);
    expect(scene.call("x")).to.deep.equal([]);
  });

  it("answers no call after the lease is lost", async () => {
    const scene = new Scene();
    const answers = scene.call("a");
    const { context } = await scene.opened();
    const { resolve } = await scene.message(1);
    expect(await context.confirm()).to.equal(true);
    scene.owned = false;
    expect(await context.confirm()).to.equal(false);
    resolve({ text: "A" });
    await until("it is told", () => answers.length === 1);
    expect(answers).to.deep.equal([{ misdirected: true }]);
  });

  it("retries mail, gives up after MAIL_TRIES_MAX or at a refusal, and goes on with the next mail", async () => {
    const scene = new Scene();
    const [failing, refused, good] = [1, 2, 3].map((at) => scene.deliver(`m${at}`, at));
    await scene.opened();
    for (let tries = 1; tries <= MAIL_TRIES_MAX; tries++) {
      const { reject, id } = await scene.message(tries);
      expect(id).to.equal("mail-1");
      reject(new Error("stumbled"));
      await until("it rests or goes on", () => {
        scene.clock.skip(60_000);
        return scene.received.length > tries;
      });
    }
    const { reject } = await scene.message(MAIL_TRIES_MAX + 1);
    reject(new ActorError("conflict", "Cannot hear"));
    const last = await scene.message(MAIL_TRIES_MAX + 2);
    last.resolve(undefined);
    await until("all is done", () => good?.done === 1);
    expect([failing?.done, refused?.done]).to.deep.equal([1, 1]);
    expect(scene.buried).to.deep.equal(["hear: stumbled", "hear: Cannot hear"]);
  });

  it("does not count a passing error as a try of the mail", async () => {
    const scene = new Scene();
    const mail = scene.deliver("m", 1);
    await scene.opened();
    for (let tries = 1; tries <= 3 * MAIL_TRIES_MAX; tries++) {
      (await scene.message(tries)).reject(new ActorError("busy", "Cannot hear: full"));
      await until("it is tried again", () => {
        scene.clock.skip(MAIL_RETRY_MS);
        return scene.received.length > tries;
      });
    }
    scene.received.at(-1)?.resolve(undefined);
    await until("it is done", () => mail.done === 1);
    expect(scene.buried).to.deep.equal([]);
  });

  it("gives up mail that meets only temporary errors for HOSTED_MAIL_MS_MAX, whether open or not", async () => {
    const busy = new ActorError("busy", "Cannot hear: full");
    const shut = new Scene();
    const mails = ["told", "next"].map((text, at) => shut.deliver(text, at + 1));
    for (let tries = 0; mails[0]?.done === 0; tries++) {
      shut.clock.skip(HOSTED_MAIL_MS_MAX / 2);
      shut.openings[tries]?.reject(busy);
      await until("it is tried again", () => {
        shut.clock.skip(MAIL_RETRY_MS);
        return shut.openings.length > tries + 1;
      });
      expect(tries).to.be.lessThan(MAIL_TRIES_MAX);
    }
    // The next mail has a time of its own.
    expect(mails[1]?.done).to.equal(0);
    expect(shut.told).to.deep.equal(["a hear told: Cannot hear: full"]);
    expect(shut.buried).to.deep.equal([]);

    const open = new Scene();
    const mail = open.deliver("m", 1);
    await open.opened();
    (await open.message(1)).reject(busy);
    await until("it is tried again", () => {
      open.clock.skip(MAIL_RETRY_MS);
      return open.received.length > 1;
    });
    open.clock.skip(HOSTED_MAIL_MS_MAX);
    open.received.at(-1)?.reject(busy);
    await until("it is given up", () => {
      open.clock.skip(60_000);
      return mail.done === 1;
    });
    expect(open.received).to.have.length(2);
    expect(open.buried).to.deep.equal(["hear: Cannot hear: full"]);
  });

  it("that fails to open makes callers retry or refuses them; mail waits or is refused", async () => {
    const scene = new Scene();
    const away = scene.call("a");
    const mail = scene.deliver("m", 1);
    (await until("an opening", () => scene.openings[0])).reject(new BusLost("away"));
    await until("it is told", () => away.length === 1);
    expect(away).to.deep.equal([{ misdirected: true }]);
    // A call ends the pause before the next try of the mail.
    const refused = scene.call("b");
    (await until("an opening", () => scene.openings[1])).reject(new ActorError("not_found", "No"));
    await until("it is told", () => refused.length === 1 && mail.done === 1);
    expect(refused[0]).to.have.nested.property("refusal.code", "not_found");
    expect(scene.buried).to.deep.equal(["hear: No"]);
    await until("it is forgotten", () => scene.forgotten === 1);
  });

  it("that ends by itself returns its calls and mail, and closes before the next instance opens", async () => {
    const scene = new Scene();
    const answers = scene.call("a");
    const mail = scene.deliver("m", 1);
    const { context } = await scene.opened();
    await scene.message(2);
    context.end(new Error("fenced out"));
    await until("the call is given back", () => answers.length === 1);
    expect(answers).to.deep.equal([{ misdirected: true }]);
    const closing = await until("it is closed", () => scene.closings[0]);
    expect(closing.signal.aborted).to.equal(true);
    expect(context.signal.aborted).to.equal(true);
    const again = scene.call("a");
    expect(scene.openings).to.have.length(1);
    closing.resolve();
    await scene.opened(2);
    (await scene.message(3)).resolve({ text: "A" });
    await until("it is answered", () => again.length === 1);
    await until("the mail is tried", () => {
      scene.clock.skip(60_000);
      return scene.received.length === 4;
    });
    expect(scene.received[3]?.id).to.equal("mail-1");
    scene.received[3]?.resolve(undefined);
    await until("it is done", () => mail.done === 1);
    // An answer of the first instance arrives too late and is ignored.
    scene.received[0]?.resolve({ text: "late" });
    expect(answers).to.have.length(1);
  });

  it("mail that ends its instance at every try becomes a dead letter", async () => {
    const scene = new Scene();
    const mail = scene.deliver("m", 1);
    for (let tries = 1; tries <= MAIL_TRIES_MAX; tries++) {
      const { context } = await scene.opened(tries);
      await until("it is tried", () => {
        scene.clock.skip(60_000);
        return scene.received.length === tries;
      });
      context.end(new Error("crashed"));
      (await until("it is closed", () => scene.closings[tries - 1])).resolve();
    }
    await scene.opened(MAIL_TRIES_MAX + 1);
    await until("it is buried", () => {
      scene.clock.skip(60_000);
      return mail.done === 1;
    });
    expect(scene.buried).to.deep.equal(["hear: crashed"]);
  });

  it("reports refused mail to its sender, whether open or not, and keeps other failed mail as dead letters", async () => {
    const scene = new Scene();
    const mails = ["told", "kept", "fails", "told"].map((text, at) => scene.deliver(text, at + 1));
    const refused = new ActorError("not_found", "no such guest");
    (await until("it opens", () => scene.openings[0])).reject(refused);
    await until("the first is done", () => mails[0]?.done === 1);
    await scene.opened(2);
    for (const at of [1, 2, 3]) (await scene.message(at)).reject(refused);
    await until("all are done", () => mails.every(({ done }) => done === 1));
    expect(scene.told).to.deep.equal(
      ["told", "kept", "fails", "told"].map((text) => `a hear ${text}: no such guest`),
    );
    expect(scene.buried).to.deep.equal(["hear: no such guest", "hear: no such guest"]);
  });

  it("is idle when no message runs and the instance is not busy; it closes, and opens again", async () => {
    const scene = new Scene();
    const answers = scene.call("a");
    expect(scene.activation.isIdle).to.equal(false);
    await scene.opened();
    const { resolve } = await scene.message(1);
    expect(scene.activation.isIdle).to.equal(false);
    resolve({ text: "A" });
    await until("it is answered", () => answers.length === 1);
    expect(scene.activation.isIdle).to.equal(true);
    expect(scene.activation.idleMs).to.equal(1_000);
    scene.idleMs = 5_000;
    expect(scene.activation.idleMs).to.equal(5_000);
    scene.isBusy = true;
    expect(scene.activation.isIdle).to.equal(false);
    scene.isBusy = false;
    scene.activation.passivate();
    const closing = await until("it closes", () => scene.closings[0]);
    expect(closing.signal.aborted).to.equal(false);
    const later = scene.call("b");
    closing.resolve();
    await scene.opened(2);
    (await scene.message(2)).resolve({ text: "B" });
    await until("it is answered", () => later.length === 1);
    scene.activation.passivate();
    (await until("it closes", () => scene.closings[1])).resolve();
    await until("it is forgotten", () => scene.forgotten === 1);
    expect(scene.openings).to.have.length(2);
  });

  it("that leaves takes no more messages, and is settled when its messages are answered and it is closed", async () => {
    const scene = new Scene();
    const answers = scene.call("a");
    await scene.opened();
    const { resolve } = await scene.message(1);
    scene.activation.leave();
    expect(scene.call("b")).to.deep.equal([{ misdirected: true }]);
    const mail = scene.deliver("m", 1);
    const closing = await until("it closes", () => scene.closings[0]);
    expect(closing.signal.aborted).to.equal(false);
    expect(scene.activation.isSettled).to.equal(false);
    resolve({ text: "A" });
    await until("it is answered", () => answers.length === 1);
    expect(answers).to.deep.equal([{ reply: '{"text":"A"}' }]);
    closing.resolve();
    await until("it is settled", () => scene.activation.isSettled);
    expect(mail.done).to.equal(0);
    expect(scene.received).to.have.length(1);
  });

  it("that leaves while it opens is closed again; a dropped one learns that at once", async () => {
    const leaving = new Scene();
    const early = leaving.call("a");
    leaving.activation.leave();
    expect(early).to.deep.equal([{ misdirected: true }]);
    const { context } = await leaving.opened();
    expect(context.signal.aborted).to.equal(true);
    (await until("it closes", () => leaving.closings[0])).resolve();
    await until("it is settled", () => leaving.activation.isSettled);

    const dropped = new Scene();
    const answers = dropped.call("a");
    const opening = await dropped.opened();
    await dropped.message(1);
    dropped.activation.end();
    expect(answers).to.deep.equal([{ misdirected: true }]);
    expect(opening.context.signal.aborted).to.equal(true);
    expect(await opening.context.confirm()).to.equal(false);
    const closing = await until("it closes", () => dropped.closings[0]);
    expect(closing.signal.aborted).to.equal(true);
    closing.resolve();
    await dropped.activation.closed;
  });

  it("that is dropped refuses calls that may have had an effect, and returns calls that had not begun", async () => {
    const scene = new Scene();
    scene.mayRepeat = false;
    const begun = scene.call("a");
    await scene.opened();
    await scene.message(1);
    scene.activation.end();
    expect(begun).to.have.nested.property("[0].refusal.code", "deadline_exceeded");
    (await until("it closes", () => scene.closings[0])).resolve();
    const early = new Scene();
    early.mayRepeat = false;
    const waiting = early.call("a");
    early.activation.end();
    expect(waiting).to.deep.equal([{ misdirected: true }]);
  });
});
