/** One key of a hosted kind in memory: opens its instance for a message, passes messages to it, and closes it. */
import { randomBytes } from "node:crypto";
import type { Messages } from "../../../schemas/contract.ts";
import { type ActorError, isPassing } from "../../../schemas/errors.ts";
import {
  CALL_DEADLINE_MS_MAX,
  CLOCK_SKEW_MS_MAX,
  MAIL_TRIES_MAX,
  MAILBOX_MAX,
} from "../../../schemas/limits.ts";
import { refusalOf } from "../bus/refusal.ts";
import { AnsweredCalls } from "../calls/answered-calls.ts";
import type { AnyHostedDefinition, HostedInstance } from "../kinds/define-hosted.ts";
import { encodeReply, readMessage } from "../kinds/read-message.ts";
import { inSpan } from "../lib/trace.ts";
import {
  type Answer,
  busy,
  type Delivery,
  GIVEN_UP,
  type IncomingCall,
  isOverdue,
  LATE,
  mailPauseMs,
} from "../shards/incoming.ts";
import type { Activated } from "./activated.ts";
import type { ActivationHost } from "./activation-host.ts";
import { refuseFailure } from "./refuse-failure.ts";

/** The functions of the host that a hosted activation uses. A test can provide its own. */
interface HostedActivationHost
  extends Pick<ActivationHost, "clock" | "logger" | "answerRead" | "bury"> {
  /** Resolves with true if this host surely owns the shard. */
  confirm(): Promise<boolean>;
  /** Removes the activation from memory: its instance is closed, and no message waits for a new instance. */
  forget(activation: HostedActivation): void;
}

/** One life of an instance, from its opening to its closing. */
interface Life {
  /** Absent until it is open. */
  instance: HostedInstance<Messages> | undefined;
  /** Resolves when the instance must close; with an error if the instance failed. */
  over: PromiseWithResolvers<Error | undefined>;
  isOver: boolean;
  /** Aborts when nobody waits any more for the messages under way. */
  abandoned: AbortController;
  /** Ends the wait for a delivery that the instance will not finish. */
  giveUp(): void;
}

/** `leaving`: takes no more messages and finishes the messages in progress. `ended`: another host owns the key. */
type Status = "staying" | "leaving" | "ended";

export class HostedActivation implements Activated {
  readonly definition: AnyHostedDefinition;
  readonly address: string;
  readonly key: string;
  readonly #host: HostedActivationHost;
  #status: Status = "staying";
  #life: Life | undefined;
  #running: Promise<void> | undefined;
  /** Calls that wait for an open instance. */
  #waiting: IncomingCall[] = [];
  /** Calls that the instance is handling, by id. A copy of a call that arrives meanwhile gets the same answer. */
  readonly #underWay = new Map<string, IncomingCall[]>();
  readonly #deliveries: Delivery[] = [];
  /** The error of the last try to deliver the first delivery of the queue. */
  #failure = new Error("never tried");
  #delivering: Life | undefined;
  /** The life whose instance is handling the first delivery. */
  #trying: Life | undefined;
  readonly #answered = new AnsweredCalls();
  #resting = new AbortController();
  #lastUsedAt: number;

  constructor(
    host: HostedActivationHost,
    identity: { definition: AnyHostedDefinition; address: string; key: string },
  ) {
    this.#host = host;
    this.definition = identity.definition;
    this.address = identity.address;
    this.key = identity.key;
    this.#lastUsedAt = host.clock.monotonic();
  }

  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  get isIdle(): boolean {
    return this.#life?.instance?.isBusy === false && this.#isQuiet;
  }

  get idleMs(): number {
    return this.#life?.instance?.idleMs ?? this.definition.idleMs;
  }

  get isSettled(): boolean {
    return this.#running === undefined;
  }

  /** Resolves when the activation's instance is closed. Never rejects. */
  get closed(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  call(call: IncomingCall): void {
    this.#lastUsedAt = this.#host.clock.monotonic();
    if (this.#status !== "staying") call.respond({ misdirected: true });
    else if (this.#waiting.length + this.#underWay.size >= MAILBOX_MAX) {
      call.respond(busy(this.address, "its mailbox is full"));
    } else if (this.#life?.instance && !this.#life.isOver) this.#receive(this.#life, call);
    else {
      this.#waiting.push(call);
      this.#wake();
    }
  }

  /** Queues a delivery. Deliveries run in their order; a failed one is retried later, and calls run meanwhile. */
  deliver(delivery: Delivery): void {
    if (this.#status !== "staying") return;
    this.#lastUsedAt = this.#host.clock.monotonic();
    this.#deliveries.push(delivery);
    if (this.#life?.instance && !this.#life.isOver) void this.#deliver(this.#life);
    else this.#wake();
  }

  /** Opens no instance before `closed` resolves, because another activation of the key is still closing. */
  startAfter(closed: Promise<void>): void {
    this.#running = closed.then(() => this.#run());
  }

  /** Closes the idle instance. A message that arrives meanwhile opens a new instance. */
  passivate(): void {
    if (this.#life) finish(this.#life);
  }

  /** Called when the shard is handed over. Finishes the messages in progress, takes no new ones, and closes. */
  leave(): void {
    if (this.#status !== "staying") return;
    this.#status = "leaving";
    this.#dropWaiting();
    if (!this.#life) return;
    if (!this.#life.instance) this.#life.abandoned.abort();
    finish(this.#life);
  }

  end(): void {
    if (this.#status === "ended") return;
    this.#status = "ended";
    this.#dropWaiting();
    this.#giveBack();
    if (!this.#life) return;
    this.#life.abandoned.abort();
    finish(this.#life);
  }

  get #isQuiet(): boolean {
    return this.#waiting.length + this.#underWay.size + this.#deliveries.length === 0;
  }

  #wake(): void {
    if (this.#waiting.length > 0) this.#resting.abort();
    this.#running ??= this.#run();
  }

  /** While messages wait, opens an instance and serves them until the instance closes. */
  async #run(): Promise<void> {
    let failures = 0;
    while (this.#status === "staying" && this.#waiting.length + this.#deliveries.length > 0) {
      const life: Life = {
        instance: undefined,
        over: Promise.withResolvers(),
        isOver: false,
        abandoned: new AbortController(),
        giveUp: () => {},
      };
      this.#life = life;
      const error = await this.#open(life);
      if (error) {
        await this.#afterFailedOpen(error, ++failures);
        continue;
      }
      failures = 0;
      await this.#serve(life);
    }
    this.#life = undefined;
    this.#running = undefined;
    this.#host.forget(this);
  }

  /** Opens the instance. Returns an error if the opening fails, or if the instance ended with an error meanwhile. */
  async #open(life: Life): Promise<Error | undefined> {
    const { confirm } = this.#host;
    const context = {
      confirm: async () => !life.isOver && this.#status !== "ended" && (await confirm()),
      hasOtherMail: () =>
        this.#deliveries.some(({ message }) => message !== this.#deliveries[0]?.message),
      end: (error: Error) => finish(life, error),
      signal: life.abandoned.signal,
    };
    try {
      const instance = await this.definition.open(this.key, context);
      const early = life.isOver && (await life.over.promise);
      life.instance = instance;
      if (!early) return undefined;
      life.abandoned.abort();
      await instance.close(life.abandoned.signal);
      return early;
    } catch (error) {
      finish(life);
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  async #serve(life: Life): Promise<void> {
    if (!life.isOver) {
      for (const call of this.#waiting.splice(0)) this.#receive(life, call);
      void this.#deliver(life);
    }
    const error = await life.over.promise;
    if (error) {
      life.abandoned.abort();
      this.#log(error, "instance ended");
      this.#giveBack();
      if (this.#trying === life) this.#failed(error);
      life.giveUp();
    }
    await life.instance?.close(life.abandoned.signal);
    // Give back the calls that the instance has not answered before it closed.
    this.#giveBack();
    life.giveUp();
  }

  /** Refuses waiting calls; after a fault, callers repeat them. Retries mail for a time, except after a refusal. */
  async #afterFailedOpen(error: Error, failures: number): Promise<void> {
    const refusal = refusalOf(error);
    const { clock } = this.#host;
    if (this.#status !== "staying") return;
    this.#log(error, "instance not opened");
    for (const call of this.#waiting.splice(0))
      call.respond(refusal ? { refusal } : { misdirected: true });
    const [delivery] = this.#deliveries;
    if (!delivery) return;
    const isLasting = refusal !== undefined && !isPassing(refusal);
    if (isLasting || isOverdue(delivery, clock.monotonic())) {
      await this.#bury(delivery, refusal ?? error);
    } else await this.#rest(failures);
  }

  #receive(life: Life, call: IncomingCall): void {
    const id = call.id ? `${call.id.client}.${call.id.number}` : randomBytes(12).toString("hex");
    const copies = this.#underWay.get(id);
    const isLate = call.deadlineAt + CLOCK_SKEW_MS_MAX < this.#host.clock.now();
    const early = this.#answered.find(call.id) ?? (isLate && !copies ? LATE : undefined);
    if (early) this.#host.answerRead(call.respond, early);
    else if (copies) copies.push(call);
    if (early || copies) return;
    const same = [call];
    this.#underWay.set(id, same);
    void this.#handle(life, call, id, call.deadlineAt)
      .then(
        (reply): Answer => ({ reply }),
        (error: unknown): Answer => ({ refusal: this.#refuse(error, call) }),
      )
      .then((answer) => {
        // If the entry has changed, the call was given back to its sender, and its next receiver answers it.
        if (this.#underWay.get(id) !== same) return;
        this.#underWay.delete(id);
        this.#answered.keep(call.id, answer);
        for (const { respond } of same) this.#host.answerRead(respond, answer);
      });
  }

  /** Resolves with the reply as text. */
  async #handle(
    { instance }: Life,
    { message, input, trace, id: call }: Pick<IncomingCall, "message" | "input" | "trace" | "id">,
    id: string,
    deadlineAt: number,
  ): Promise<string> {
    const { contract } = this.definition;
    const read = readMessage(contract, message, input);
    const way = id.startsWith("mail-") ? "mail" : "call";
    const reply = await inSpan({ way, kind: contract.kind, message, key: this.key }, trace, () =>
      instance?.receive({ message, input: read.input, id, ...(call && { call }), deadlineAt }),
    );
    return encodeReply(read.schema, message, reply);
  }

  async #deliver(life: Life): Promise<void> {
    if (this.#delivering === life) return;
    this.#delivering = life;
    for (;;) {
      const [delivery] = this.#deliveries;
      if (!delivery || life.isOver) break;
      if (delivery.tries > 0) await this.#rest(delivery.tries);
      if (life.isOver) break;
      await this.#tryOnce(life, delivery);
    }
    if (this.#delivering === life) this.#delivering = undefined;
  }

  async #tryOnce(life: Life, delivery: Delivery): Promise<void> {
    if (delivery.tries >= MAIL_TRIES_MAX) return this.#bury(delivery, this.#failure);
    const id = `mail-${delivery.sequence ?? `${delivery.message}-${delivery.dueAt}`}`;
    const deadlineAt = this.#host.clock.now() + CALL_DEADLINE_MS_MAX;
    const { promise, resolve } = Promise.withResolvers<"done" | "given up" | Error>();
    this.#trying = life;
    // A failed instance may never settle its promise, so `giveUp` can end this wait.
    life.giveUp = () => resolve("given up");
    this.#handle(life, delivery, id, deadlineAt).then(
      () => resolve("done"),
      (cause: unknown) => resolve(cause instanceof Error ? cause : new Error(String(cause))),
    );
    const outcome = await promise;
    if (this.#trying === life) this.#trying = undefined;
    if (outcome === "given up") return;
    if (outcome === "done") return this.#done(delivery);
    const refusal = refusalOf(outcome);
    if (refusal && !isPassing(refusal)) await this.#bury(delivery, outcome);
    else if (this.#deliveries[0] === delivery) this.#failed(outcome);
  }

  /** Records one more failed try of the first delivery. Temporary errors count only when they last too long. */
  #failed(error: Error): void {
    const [delivery] = this.#deliveries;
    if (!delivery) return;
    this.#failure = error;
    this.#refuse(error, delivery);
    if (!isPassing(refusalOf(error))) delivery.tries += 1;
    else if (isOverdue(delivery, this.#host.clock.monotonic())) delivery.tries = MAIL_TRIES_MAX;
    else delivery.tries = Math.max(1, delivery.tries);
  }

  async #bury(delivery: Delivery, error: Error): Promise<void> {
    if (!(await this.#isTold(delivery, error))) await this.#host.bury(delivery, error);
    this.#done(delivery);
  }

  async #isTold(delivery: Delivery, error: Error): Promise<boolean> {
    const { message, input } = delivery;
    const { definition, key } = this;
    if (!definition.refused) return false;
    try {
      const read = readMessage(definition.contract, message, input);
      return await definition.refused(key, { message, input: read.input }, error);
    } catch (thrown) {
      this.#refuse(thrown, delivery);
      return false;
    }
  }

  #done(delivery: Delivery): void {
    if (this.#deliveries[0] === delivery) this.#deliveries.shift();
    delivery.done();
  }

  /** Pauses before the next try. The pause ends early when a call arrives, or when the activation leaves or ends. */
  async #rest(failures: number): Promise<void> {
    this.#resting = new AbortController();
    await this.#host.clock.wait(mailPauseMs(failures), this.#resting.signal);
  }

  /** Gives unanswered calls back to their senders: only the next instance knows whether the calls had an effect. */
  #giveBack(): void {
    const given = [...this.#underWay];
    this.#underWay.clear();
    const instance = this.#life?.instance;
    for (const [id, copies] of given) {
      const answer: Answer = instance?.mayRepeat?.(id) === false ? GIVEN_UP : { misdirected: true };
      for (const call of copies) call.respond(answer);
    }
  }

  #dropWaiting(): void {
    this.#deliveries.splice(0);
    for (const call of this.#waiting.splice(0)) call.respond({ misdirected: true });
    this.#resting.abort();
  }

  #refuse(error: unknown, failed: Pick<IncomingCall, "message" | "trace">): ActorError {
    const { kind } = this.definition.contract;
    return refuseFailure(error, failed, { logger: this.#host.logger, kind, key: this.key });
  }

  #log(error: Error, text: string): void {
    const { kind } = this.definition.contract;
    this.#host.logger.warn({ err: error, kind, key: this.key }, text);
  }
}

function finish(life: Life, error?: Error): void {
  if (life.isOver) return;
  life.isOver = true;
  life.over.resolve(error);
}
