/** What an agent's inbox sent in one mail: run in order, and the inbox told what became of it, also where the instance ends. */
import type { AgentDelivery } from "../../schemas/agent.ts";
import type { DeliveryOutcome } from "../../schemas/agent-inbox.ts";
import type { ProcessAnswer, TurnInput } from "../../schemas/app-process.ts";
import type { DeepReadonly } from "../../schemas/contract.ts";
import { ActorError, isPassing } from "../../schemas/errors.ts";
import { isSuccessful } from "../../schemas/status-classes.ts";
import { DELIVERIES_TOGETHER_MS_MAX } from "../../schemas/webhook-limits.ts";
import type { ActorClient } from "../runtime/actor-client.ts";
import type { Clock } from "../runtime/clock.ts";
import { answerDeliveries } from "./delivered.ts";
import { type BodyBlobs, readRequest } from "./process-bodies.ts";
import type { Turns } from "./turns.ts";

type Given = DeepReadonly<AgentDelivery>;

export interface DeliveriesParts {
  actors: Pick<ActorClient, "call" | "send">;
  clock: Clock;
  blobs: BodyBlobs;
  key: string;
  turns: Turns;
  run(id: string, input: TurnInput): Promise<ProcessAnswer>;
  /** False where none is to be begun any more. */
  goesOn(): boolean;
  ended(): void;
}

/** One mail at a time. */
interface Mail {
  outcomes: DeliveryOutcome[];
  /** Id of the turn that was begun last. */
  begun?: string;
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
    const { actors, key } = this.#parts;
    const mail: Mail = { outcomes: [], told: Promise.withResolvers() };
    this.#mail = mail;
    try {
      await this.#run(mail, [delivery, ...next]);
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
    const { begun, outcomes, told } = this.#mail;
    const underWay = this.#parts.turns.underWay().find(({ id }) => id === begun);
    const isFirst = outcomes.length === 0;
    if (isFirst && (begun === undefined || underWay)) return;
    if (underWay) this.#parts.turns.reject(underWay.turn, new ActorError("unavailable", message));
    await told.promise;
  }

  /** Each is begun when the one before was answered 2xx; what was not begun, the inbox sends again. */
  async #run(mail: Mail, deliveries: readonly Given[]): Promise<void> {
    const { clock, goesOn } = this.#parts;
    const { outcomes } = mail;
    const giveUpAt = clock.monotonic() + DELIVERIES_TOGETHER_MS_MAX;
    for (const delivery of deliveries) {
      const isFirst = outcomes.length === 0;
      if (!isFirst && (!goesOn() || clock.monotonic() >= giveUpAt)) return;
      try {
        const status = await this.#runOne(mail, delivery);
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

  async #runOne(mail: Mail, { id, attempt, request: given }: Given): Promise<number> {
    const request = await readRequest(this.#parts.blobs, given);
    mail.begun = id;
    const input: TurnInput = { type: "deliver", deliveryId: id, attempt, request };
    const { status } = await this.#parts.run(id, input);
    return status;
  }
}
