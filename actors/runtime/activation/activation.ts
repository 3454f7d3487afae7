/** One actor in memory. It runs its messages one at a time, and sends no answer before its change is durable. */
import { AssertionError } from "node:assert";
import type { ActorError } from "../../../schemas/errors.ts";
import {
  CLOCK_SKEW_MS_MAX,
  MAIL_TRIES_MAX,
  MAILBOX_MAX,
  REPLY_KEPT_BYTES_MAX,
} from "../../../schemas/limits.ts";
import { refusalOf } from "../bus/refusal.ts";
import { earlierAnswer } from "../calls/remembered-replies.ts";
import type { AnyActorDefinition } from "../kinds/define-actor.ts";
import { hostContext } from "../kinds/host-context.ts";
import { RowsView } from "../kinds/rows-view.ts";
import { runMessage } from "../kinds/run-message.ts";
import { deepFreeze } from "../lib/deep-freeze.ts";
import { inSpan } from "../lib/trace.ts";
import { DeliveryQueue } from "../shards/delivery-queue.ts";
import {
  type Answer,
  busy,
  type Delivery,
  type IncomingCall,
  LATE,
  mailPauseMs,
  type Waiting,
} from "../shards/incoming.ts";
import {
  applyEffects,
  encodeActor,
  encodeState,
  GONE,
  isObsolete,
  type LoadedActor,
  letGo,
  ownDueAt,
} from "../state/stored-actor.ts";
import type { Activated } from "./activated.ts";
import type { ActivationHost } from "./activation-host.ts";
import { type Change, emptyChange, isFull, recordEffects, recordLive } from "./change.ts";
import { refuseFailure } from "./refuse-failure.ts";

export class Activation implements Activated {
  readonly definition: AnyActorDefinition;
  readonly address: string;
  readonly key: string;
  readonly shard: number;
  lastUsedAt: number;
  readonly #host: ActivationHost;
  #actor: LoadedActor | undefined;
  #rows = new RowsView(new Map());
  #ended = false;
  /** Calls that wait because the state is being loaded, or because no message may run now (`#isHeld`). */
  readonly #mailbox: IncomingCall[] = [];
  readonly #deliveries = new DeliveryQueue();
  #delivering = false;
  /** True if the activation verifies after each message that the state can be stored. */
  readonly #careful: boolean;
  /** True if the actor was forgotten or an assertion failed: after the commit, a new activation reads the store. */
  #ending = false;
  /** `#open`: changes since the last `takeChange`. `#committing`: changes that are being committed, or undefined. */
  #open = emptyChange();
  #committing: Change | undefined;
  readonly #work = (way: "call" | "mail", { message }: { message: string }) => {
    const { definition, key } = this;
    return { way, kind: definition.contract.kind, message, key };
  };

  constructor(
    host: ActivationHost,
    identity: { definition: AnyActorDefinition; address: string; key: string; shard: number },
    { careful }: { careful: boolean },
  ) {
    this.#host = host;
    this.#careful = careful;
    this.definition = identity.definition;
    this.address = identity.address;
    this.key = identity.key;
    this.shard = identity.shard;
    this.lastUsedAt = host.clock.monotonic();
  }

  get isIdle(): boolean {
    return this.#actor !== undefined && this.isSettled && this.#deliveries.isEmpty;
  }

  get isSettled(): boolean {
    return !this.#open.dirty && this.#committing === undefined && this.#mailbox.length === 0;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** Takes the loaded state and runs the messages that waited for it. */
  start(actor: LoadedActor): void {
    if (this.#ended) return;
    this.#actor = actor;
    this.#rows = new RowsView(actor.rows);
    this.#resume();
  }

  /** Runs a call. Repeats the remembered reply if the call ran before. Refuses it if MAILBOX_MAX calls wait. */
  call(call: IncomingCall): void {
    this.lastUsedAt = this.#host.clock.monotonic();
    if (this.#ended) call.respond({ misdirected: true });
    else if (this.#waitingCalls >= MAILBOX_MAX)
      call.respond(busy(this.address, "its mailbox is full"));
    else if (!this.#actor || this.#isHeld) this.#mailbox.push(call);
    else {
      const now = this.#host.clock.now();
      const earlier = earlierAnswer(this.#actor.replies, call.id, this.address, now);
      // The deadline has passed. It limits how long replies are kept. A caller that still waits sends the call again.
      if (!earlier && call.deadlineAt + CLOCK_SKEW_MS_MAX < now) call.respond(LATE);
      else this.#answer(call, earlier ?? this.#runCall(this.#actor, call));
    }
  }

  /** Queues a delivery. Deliveries run in their order; a failed one is retried later, and calls run meanwhile. */
  deliver(delivery: Delivery): void {
    this.lastUsedAt = this.#host.clock.monotonic();
    this.#deliveries.push(delivery);
    this.#deliver();
  }

  /** The changes that the next commit will hold, so far. */
  get open(): Readonly<Change> {
    return this.#open;
  }

  /** Returns the change to commit now; undefined if there is none, or if the last one is not yet `committed`. */
  takeChange(): Change | undefined {
    if (!this.#open.dirty || this.#ended || this.#committing) return undefined;
    const change = this.#open;
    this.#committing = change;
    this.#open = emptyChange();
    if (this.#actor && change.rows.size > 0) change.rowMark = ++this.#actor.rowMark;
    // Messages that waited because the last change was full run now, and belong to the next change.
    if (this.#mailbox.length > 0 || !this.#deliveries.isEmpty) queueMicrotask(() => this.#resume());
    return change;
  }

  /** Returns the actor's value in its stored form. Throws the errors of `encodeActor`. */
  encode(): string | undefined {
    if (!this.#actor) throw new Error(`Cannot encode ${this.address}: it is not loaded`);
    return encodeActor(this.definition, this.address, this.#actor);
  }

  /** Sends the answers, because the commit is durable. */
  committed(): void {
    const change = this.#committing;
    this.#committing = undefined;
    if (change) this.#host.publishLive(change.live); // First: whoever is answered may count on it.
    for (const { call, answer } of change?.waiting ?? []) call.respond(answer);
    for (const { call, answer } of change?.late ?? []) {
      this.#host.answerRead(call.respond, answer);
    }
    for (const delivery of change?.delivered ?? []) delivery.done();
    if (this.#open.dirty) this.#host.markDirty();
    else if (this.#ending) this.startAnew();
    else this.#resume();
  }

  /** Called when the commit will never be made: refuses all unanswered calls. A new activation reads the store. */
  fail(error: ActorError): void {
    if (this.#ended) return;
    const { calls, deliveries } = this.#leave();
    for (const call of calls) call.respond({ refusal: error });
    this.#host.restart({ deliveries, calls: [], careful: this.#careful });
  }

  /**
   * Called when the actor's value cannot be stored. All uncommitted messages run again in an activation that checks
   * the state after each message, and refuses the message at fault. Returns false if this activation checks already.
   */
  doubt(): boolean {
    if (this.#careful) return false;
    if (!this.#ended) this.#host.restart({ ...this.#leave(), careful: true });
    return true;
  }

  /** Called when this host may have lost the shard. Answers `misdirected`, so that callers send their calls again. */
  end(): void {
    const { calls } = this.#leave();
    for (const call of calls) call.respond({ misdirected: true });
  }

  /** Answers the waiting calls, because the state cannot be read. Returns the first delivery, which stays queued. */
  failToStart(answer: Answer): Delivery | undefined {
    for (const call of this.#mailbox.splice(0)) call.respond(answer);
    this.#deliveries.giveUpDirect();
    return this.#deliveries.peek();
  }

  /** Removes the first delivery, which has become a dead letter because the state cannot be read. */
  giveUpFirst(): void {
    this.#deliveries.shift()?.done();
  }

  /** Ends this activation. The next one runs the uncommitted messages again, and then the waiting messages. */
  startAnew(): void {
    if (!this.#ended) this.#host.restart({ ...this.#leave(), careful: this.#careful });
  }

  #resume(): void {
    if (this.#ended) return;
    for (const call of this.#mailbox.splice(0)) this.call(call);
    this.#deliver();
  }

  /** Ends the activation. Returns the unanswered calls and the unfinished deliveries, in their order. */
  #leave(): Pick<Waiting, "calls" | "deliveries"> {
    const changes = this.#committing ? [this.#committing, this.#open] : [this.#open];
    const answers = [
      ...changes.flatMap((one) => one.waiting),
      ...changes.flatMap((one) => one.late),
    ];
    const calls = [...answers.map(({ call }) => call), ...this.#mailbox.splice(0)];
    const delivered = changes.flatMap((one) => one.delivered);
    this.#ended = true;
    this.#committing = undefined;
    this.#open = emptyChange();
    return { calls, deliveries: this.#deliveries.behind(delivered) };
  }

  /** True while no message may run: the open change is full, the actor was forgotten, or an assertion failed. */
  get #isHeld(): boolean {
    return isFull(this.#open) || this.#ending;
  }

  get #waitingCalls(): number {
    const { waiting = [], late = [] } = this.#committing ?? {};
    return this.#mailbox.length + this.#open.waiting.length + waiting.length + late.length;
  }

  #runCall(actor: LoadedActor, call: IncomingCall): Answer {
    const { id } = call;
    try {
      const { reply, changed } = inSpan(this.#work("call", call), call.trace, () =>
        this.#run(actor, call.message, call.input),
      );
      if (id && changed) actor.replies.remember(id, reply, this.#host.clock.now());
      else if (id) actor.replies.rememberEffectless(id, { reply });
      return { reply };
    } catch (error) {
      const refusal = this.#refuse(error, call);
      if (id) actor.replies.rememberEffectless(id, { refusal });
      return { refusal };
    }
  }

  /** Runs one message on the state in memory. If this throws, the state is unchanged. */
  #run(actor: LoadedActor, message: string, input: unknown, isDue = false) {
    const { reply, state, effects, live } = runMessage(this.definition, this.address, {
      message,
      input,
      state: actor.state,
      context: {
        key: this.key,
        ...hostContext(this.#host.clock),
        rows: this.#rows,
      },
    });
    const changed = state !== actor.state || effects !== undefined || isDue;
    if (!changed) {
      if (live !== undefined) this.#show(live);
      return { reply, changed };
    }
    if (Buffer.byteLength(reply) > REPLY_KEPT_BYTES_MAX) {
      throw new Error(`Cannot keep reply to ${message}: over ${REPLY_KEPT_BYTES_MAX} bytes`);
    }
    if (this.#careful) encodeState(this.definition, this.address, state);
    actor.state = deepFreeze(state);
    if (isDue) actor.reminders.delete(message);
    // Sets a new row mark: a replica that lags behind may still hold rows from before the actor was forgotten.
    if (actor.life !== "living" && this.definition.rows) this.#open.rowMark = ++actor.rowMark;
    actor.life = "living";
    if (effects) {
      recordEffects(this.#open, applyEffects(actor, effects, this.#host.clock.now()));
      // The actor's rows are deleted after this commit, and no later message may find them. So none runs before that.
      if (effects.forget) this.#ending = true;
    }
    if (live !== undefined) recordLive(this.#open, live);
    this.#markDirty();
    return { reply, changed };
  }

  #deliver(): void {
    if (this.#delivering) return;
    while (this.#actor && !this.#ended && !this.#isHeld) {
      const delivery = this.#deliveries.peek();
      if (!delivery) return;
      const { message, input } = delivery;
      const actor = this.#actor;
      if (isObsolete(actor, delivery)) {
        const dueAt = ownDueAt(actor, delivery);
        if (dueAt === undefined) this.#settle(delivery);
        else {
          this.#open.reminders.set(message, dueAt);
          this.#finish(actor, delivery);
        }
        continue;
      }
      try {
        const run = () => this.#run(actor, message, input, delivery.dueAt !== undefined);
        if (message === GONE) letGo(actor);
        else inSpan(this.#work("mail", delivery), delivery.trace, run);
      } catch (error) {
        if (delivery.direct) {
          this.#refuse(error, delivery);
          this.#deliveries.shift()?.direct?.giveUp(delivery.tries + 1);
          continue;
        }
        this.#delivering = true;
        // `#afterFailure` never rejects: `bury` repeats its write until the dead letter is stored.
        void this.#afterFailure(actor, delivery, error);
        return;
      }
      this.#finish(actor, delivery);
    }
  }

  /** Drops an obsolete delivery. The bus keeps the delivery until the state that makes it obsolete is durable. */
  #settle(delivery: Delivery): void {
    this.#deliveries.shift();
    if (this.#open.dirty) this.#open.delivered.push(delivery);
    else if (this.#committing) this.#committing.delivered.push(delivery);
    else if (delivery.dueAt === undefined) delivery.done();
    // The shard's next owner may have set this reminder, so `answerRead` first verifies that this host is the owner.
    else this.#host.answerRead((answer) => "reply" in answer && delivery.done(), { reply: "" });
  }

  /** Publishes a live update; if a commit is pending, after that commit, because the update may show its state. */
  #show(live: string): void {
    const pending = this.#open.dirty ? this.#open : this.#committing;
    if (pending) recordLive(pending, live);
    else this.#host.publishLive([live]);
  }

  /** Records in the open change that the delivery was handled, even if its handler had no effect. */
  #finish(actor: LoadedActor, delivery: Delivery): void {
    this.#deliveries.shift();
    if (delivery.sequence !== undefined) actor.mail = delivery.sequence;
    this.#open.delivered.push(delivery);
    this.#markDirty();
  }

  async #afterFailure(actor: LoadedActor, delivery: Delivery, error: unknown): Promise<void> {
    delivery.tries += 1;
    const failure = error instanceof Error ? error : new Error(String(error));
    const final = refusalOf(failure) !== undefined || delivery.tries >= MAIL_TRIES_MAX;
    if (final) {
      await this.#host.bury(delivery, failure);
      if (this.#ended) return;
      if (delivery.dueAt !== undefined) actor.reminders.delete(delivery.message);
      this.#finish(actor, delivery);
    } else {
      this.#refuse(failure, delivery);
      await this.#host.clock.wait(mailPauseMs(delivery.tries));
    }
    this.#delivering = false;
    this.#deliver();
  }

  #refuse(error: unknown, failed: Pick<IncomingCall, "message" | "trace">): ActorError {
    const { kind } = this.definition.contract;
    // A new activation reads the store before the next message runs, but only after the earlier changes are durable.
    if (error instanceof AssertionError) {
      this.#ending = true;
      if (!this.#open.dirty && !this.#committing) queueMicrotask(() => this.startAnew());
    }
    return refuseFailure(error, failed, { logger: this.#host.logger, kind, key: this.key });
  }

  #answer(call: IncomingCall, answer: Answer): void {
    if (this.#open.dirty) this.#open.waiting.push({ call, answer });
    else if (this.#committing) this.#committing.late.push({ call, answer });
    else this.#host.answerRead(call.respond, answer);
  }

  #markDirty(): void {
    if (!this.definition.durable) {
      for (const delivery of this.#open.delivered) delivery.done();
      this.#host.publishLive(this.#open.live);
      this.#open = emptyChange();
      return;
    }
    if (this.#open.dirty) return;
    this.#open.dirty = true;
    this.#host.markDirty();
  }
}
