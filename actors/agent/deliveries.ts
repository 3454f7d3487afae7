/** What an agent's inbox sent in one mail: run in order, and the inbox told what became of it, also where the instance ends. */
import type { AgentDelivery } from "../../schemas/agent.ts";
import type { DeliveryOutcome } from "../../schemas/agent-inbox.ts";
import type { TurnInput, TurnResult } from "../../schemas/app-process.ts";
import type { DeepReadonly } from "../../schemas/contract.ts";
import { ActorError, isPassing } from "../../schemas/errors.ts";
import { isSuccessful } from "../../schemas/status-classes.ts";
import { DELIVERIES_TOGETHER_MS_MAX } from "../../schemas/webhook-limits.ts";
import type { ActorClient } from "../runtime/actor-client.ts";
import type { Clock } from "../runtime/clock.ts";
import { answerDeliveries } from "./delivered.ts";
import type { DeliveryPace } from "./delivery-pace.ts";
import { type BodyBlobs, readRequest } from "./process-bodies.ts";
import { type Turns, unexpected } from "./turns.ts";

type Given = DeepReadonly<AgentDelivery>;

export interface DeliveriesParts {
  actors: Pick<ActorClient, "call" | "send">;
  clock: Clock;
  blobs: BodyBlobs;
  key: string;
  turns: Turns;
  pace: DeliveryPace;
  /** Begins a turn, of which `follows` is the number of the one before it. */
  begin(id: string, input: TurnInput, follows?: number): Begun;
  /** True where a process may have ended by what a delivery does. */
  hasCrashed(id: string): boolean;
  /** False where none is to be begun any more. */
  goesOn(): boolean;
  ended(): void;
}

interface Begun {
  turn: number;
  ended: Promise<TurnResult>;
}

/** One mail at a time. */
interface Mail {
  outcomes: DeliveryOutcome[];
  /** Id of the delivery that is waited for. */
  begun?: string;
  /** Aborts when the inbox is to be told without delay. */
  hurried: AbortController;
  /** Resolves when the inbox has been told, or cannot be. */
  told: PromiseWithResolvers<void>;
}

export class Deliveries {
  readonly #parts: DeliveriesParts;
  #mail: Mail | undefined;

  constructor(parts: DeliveriesParts) {
    this.#parts = parts;
  }

  get isUnderWay(): boolean {
    return this.#mail !== undefined;
  }

  /** Exactly one answer goes to the inbox, whatever becomes of the turns. */
  async take({ delivery, next = [] }: { delivery: Given; next?: readonly Given[] | undefined }) {
    const { actors, key, pace, goesOn } = this.#parts;
    const mail: Mail = {
      outcomes: [],
      hurried: new AbortController(),
      told: Promise.withResolvers(),
    };
    this.#mail = mail;
    try {
      {
        using _ = pace.begin();
        await this.#run(mail, [delivery, ...next]);
        if (goesOn()) await pace.gather(mail.hurried.signal);
      }
      await answerDeliveries(actors, key, delivery, mail.outcomes);
    } finally {
      this.#mail = undefined;
      mail.told.resolve();
      this.#parts.ended();
    }
  }

  /**
   * The instance fails. What was delivered is told before: mail that ends with its instance comes again, with all that was in
   * it. The one under way comes again then, as it would by itself.
   */
  async end({ message }: Error): Promise<void> {
    if (!this.#mail) return;
    const { begun, outcomes, hurried, told } = this.#mail;
    hurried.abort();
    const underWay = this.#parts.turns.underWay().find(({ id }) => id === begun);
    const isFirst = outcomes.length === 0;
    if (isFirst && (begun === undefined || underWay)) return;
    if (underWay) this.#parts.turns.reject(underWay.turn, new ActorError("unavailable", message));
    await told.promise;
  }

  /** Each is begun when the one before was answered 2xx; what was not begun, the inbox sends again. */
  async #run(mail: Mail, deliveries: readonly Given[]): Promise<void> {
    const { clock, goesOn, hasCrashed } = this.#parts;
    const { outcomes } = mail;
    const giveUpAt = clock.monotonic() + DELIVERIES_TOGETHER_MS_MAX;
    // By which of them its process ended is seen only where they go one by one.
    let isTogether = !deliveries.some(({ id }) => hasCrashed(id));
    let begun: Begun[] = [];
    let start = 0;
    for (const [index, delivery] of deliveries.entries()) {
      const isFirst = index === 0;
      mail.begun = delivery.id;
      try {
        let result = await begun[index - start]?.ended;
        if (!result || result.type === "nothing") {
          if (!isFirst && (!goesOn() || clock.monotonic() >= giveUpAt)) return;
          // Those that cannot share a record are not sent along in vain.
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
        // It passes: this mail comes again, or the inbox sends this one again.
        if (!isRefusal && isFirst) throw error;
        if (isRefusal) outcomes.push({ error: error.message });
        return;
      }
    }
  }

  /** The process begins each behind the one before, where both can be one record. */
  async #beginAll(first: Given, others: readonly Given[]): Promise<[Begun, ...Begun[]]> {
    const all: [Begun, ...Begun[]] = [await this.#begin(first)];
    for (const one of others) {
      try {
        all.push(await this.#begin(one, all.at(-1)?.turn));
      } catch {
        // Whatever it is, it is met again when its turn has come.
        break;
      }
    }
    return all;
  }

  async #begin({ id, attempt, request: given }: Given, follows?: number): Promise<Begun> {
    const request = await readRequest(this.#parts.blobs, given);
    const input: TurnInput = { type: "deliver", deliveryId: id, attempt, request };
    const begun = this.#parts.begin(id, input, follows);
    // Those behind one that fails are not waited for.
    begun.ended.catch(() => {});
    return begun;
  }
}
