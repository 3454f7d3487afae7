/**
 * Runs the deliveries of an agent's inbox in order, and reports their results to the inbox, also when the instance
 * ends.
 */
import type { AgentDelivery } from "../../../schemas/apps/agent.ts";
import { agentInbox, type DeliveryOutcome } from "../../../schemas/apps/agent-inbox.ts";
import type { TurnInput, TurnResult } from "../../../schemas/apps/app-process.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError, isPassing } from "../../../schemas/errors.ts";
import { isSuccessful } from "../../../schemas/status-classes.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";
import { type Clock, OVER } from "../../runtime/lib/clock.ts";
import { type BodyBlobs, readRequest } from "../lib/app-process/process-bodies.ts";
import { lineOf } from "../lib/app-process/process-error.ts";
import { type Turns, unexpected } from "../lib/app-process/turns.ts";
import { answerDeliveries } from "./delivered.ts";
import type { DeliveryPace } from "./delivery-pace.ts";

/**
 * No further event of a round begins after this time. The finished events are reported, and the others come in a
 * later round, so slow code gets its events one by one.
 */
export const DELIVERIES_TOGETHER_MS_MAX = 1_000;
/**
 * Time for which one mail may cause rounds of deliveries, because an unfinished mail delays the removal of later
 * mail. After this time another mail continues.
 */
export const DELIVERIES_OF_MAIL_MS_MAX = 3_000;

type Given = DeepReadonly<AgentDelivery>;

interface DeliveriesParts {
  actors: Pick<ActorClient, "call" | "send">;
  clock: Clock;
  blobs: BodyBlobs;
  key: string;
  turns: Turns;
  pace: DeliveryPace;
  /** Begins a turn. `follows` is the number of an earlier turn after which this turn runs. */
  begin(id: string, input: TurnInput, after: { follows?: number }): Begun;
  /** Returns whether a process may have ended because of this delivery. */
  hasCrashed(id: string): boolean;
  /** Returns false when no more deliveries may begin. */
  goesOn(): boolean;
  /** Returns true when other work of the agent waits for its turn. */
  givesWay(): boolean;
  ended(): void;
}

interface Begun {
  turn: number;
  ended: Promise<TurnResult>;
}

/** Temporary: the mail is delivered again, to the agent's owner at that time. */
class Closing extends ActorError {
  constructor() {
    super("unavailable", "Cannot deliver: the agent closes");
  }
}

/** Deliveries that run in one round. */
interface Round {
  outcomes: DeliveryOutcome[];
  /** Id of the delivery whose result the round waits for. */
  begun?: string;
  /** Resolves when the report to the inbox was delivered or has failed. */
  told: PromiseWithResolvers<void>;
}

export class Deliveries {
  readonly #parts: DeliveriesParts;
  #isUnderWay = false;
  /** Aborts when no more deliveries may begin. Results are then reported to the inbox without delay. */
  readonly #stopped = new AbortController();
  #round: Round | undefined;

  constructor(parts: DeliveriesParts) {
    this.#parts = parts;
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /**
   * Takes rounds of events from the inbox until none is left or another mail must continue. Only then is the mail
   * acknowledged, so that the agent's next owner continues after a failure. Rejects when the next owner must
   * continue.
   */
  async take(): Promise<void> {
    const { actors, clock, key, givesWay, ended } = this.#parts;
    const giveWayAt = clock.monotonic() + DELIVERIES_OF_MAIL_MS_MAX;
    this.#isUnderWay = true;
    try {
      for (let hasNext = true; hasNext; ) {
        const { signal } = this.#stopped;
        const { deliveries, waiting } = await actors
          .call(agentInbox, key, "current", {}, { signal })
          .catch((error: unknown) => {
            throw signal.aborted ? new Closing() : error;
          });
        if (!this.#goesOn) throw new Closing();
        const [first, ...others] = deliveries;
        if (!first) return;
        const takesNext = () => this.#goesOn && !givesWay() && clock.monotonic() < giveWayAt;
        hasNext = await this.#take([first, ...others], { waiting, takesNext });
      }
    } finally {
      this.#isUnderWay = false;
      ended();
    }
  }

  get #goesOn(): boolean {
    return !this.#stopped.signal.aborted && this.#parts.goesOn();
  }

  /**
   * Runs one round and sends exactly one report to the inbox, whatever the turns do. Resolves with whether the same
   * mail must take another round.
   */
  async #take(
    deliveries: readonly [Given, ...Given[]],
    { waiting, takesNext }: { waiting: number; takesNext: () => boolean },
  ): Promise<boolean> {
    const { actors, key, pace, givesWay } = this.#parts;
    const round: Round = {
      outcomes: [],
      told: Promise.withResolvers(),
    };
    this.#round = round;
    try {
      await this.#run(round, deliveries);
      if (this.#goesOn && !givesWay()) await pace.gather(waiting, this.#stopped.signal);
      const [first] = deliveries;
      return await answerDeliveries(actors, key, first, round.outcomes, { takesNext: takesNext() });
    } finally {
      this.#round = undefined;
      round.told.resolve();
    }
  }

  /** Begins no more deliveries and reports results without delay, because the agent closes. */
  stop(): void {
    this.#stopped.abort(OVER);
  }

  /**
   * Ends deliveries because the instance failed. Handled events are reported first, so that only the event in
   * progress is delivered again.
   */
  async end({ message }: Error): Promise<void> {
    if (!this.#round) return;
    const { begun, outcomes, told } = this.#round;
    this.stop();
    const underWay = this.#parts.turns.underWay().find(({ id }) => id === begun);
    const isFirst = outcomes.length === 0;
    if (isFirst && (begun === undefined || underWay)) return;
    if (underWay) this.#parts.turns.reject(underWay.turn, new ActorError("unavailable", message));
    await told.promise;
  }

  /**
   * Begins each delivery after the previous one was answered 2xx. If a delivery does not begin, the inbox offers it
   * in a later round.
   */
  async #run(round: Round, deliveries: readonly Given[]): Promise<void> {
    const { clock, hasCrashed } = this.#parts;
    const { outcomes } = round;
    const giveUpAt = clock.monotonic() + DELIVERIES_TOGETHER_MS_MAX;
    // Runs deliveries one by one if one of them may have ended the process, to find out which.
    let isTogether = !deliveries.some(({ id }) => hasCrashed(id));
    let begun: Begun[] = [];
    let start = 0;
    for (const [index, delivery] of deliveries.entries()) {
      const isFirst = index === 0;
      round.begun = delivery.id;
      try {
        let result = await begun[index - start]?.ended;
        if (!result || result.type === "nothing") {
          if (!isFirst && (!this.#goesOn || clock.monotonic() >= giveUpAt)) return;
          // If the last group completed only one event, its events could not share a record, so the following events
          // run one by one.
          isTogether &&= isFirst || index - start > 1;
          const all = await this.#beginAll(delivery, isTogether ? deliveries.slice(index + 1) : []);
          begun = all;
          start = index;
          result = await all[0].ended;
        }
        if (result.type !== "answer") throw unexpected(result);
        const { status } = result.answer;
        outcomes.push({ status });
        if (!isSuccessful(status)) return;
      } catch (error) {
        const isRefusal = error instanceof ActorError && !isPassing(error);
        // A temporary error is not reported. For the first delivery the mail is delivered again, and the inbox offers
        // later deliveries again.
        if (!isRefusal && isFirst) throw error;
        if (isRefusal) outcomes.push({ error: lineOf(error) });
        return;
      }
    }
  }

  /**
   * Begins all deliveries without waiting for results. The process runs each after the previous one, and both may
   * share a record.
   */
  async #beginAll(first: Given, others: readonly Given[]): Promise<[Begun, ...Begun[]]> {
    const all: [Begun, ...Begun[]] = [await this.#begin(first)];
    for (const one of others) {
      try {
        all.push(await this.#begin(one, all.at(-1)?.turn));
      } catch {
        // The error occurs again when this delivery is the first of its round, and is handled then.
        break;
      }
    }
    return all;
  }

  async #begin({ id, attempt, request: given }: Given, follows?: number): Promise<Begun> {
    const request = await readRequest(this.#parts.blobs, given);
    const input: TurnInput = { type: "deliver", deliveryId: id, attempt, request };
    const begun = this.#parts.begin(id, input, { ...(follows && { follows }) });
    // Nobody awaits the events after a failed one, so their rejections are ignored here.
    begun.ended.catch(() => {});
    return begun;
  }
}
