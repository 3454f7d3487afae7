/** The places of an account's outgoing webhooks during the transition that changes them. */
import { OUTGOING_PLACES_MAX, OUTGOING_TRY_MS_MAX } from "../../../schemas/apps/limits.ts";
import { outgoingWebhook } from "../../../schemas/apps/outgoing-webhook.ts";
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { Draft } from "../../runtime/draft.ts";
import type { HandlerContext } from "../../runtime/kinds/define-actor.ts";
import type { OutgoingPlacesState, WaitingQueueRow } from "./outgoing-places-state.ts";

/**
 * Limit of the queues of one account that wait for a place. With endpoints that do not answer, the last of them waits
 * half an hour. A queue that finds no room asks again after OUTGOING_ASK_MS.
 */
export const OUTGOING_QUEUES_MAX = 2_000;
/**
 * Time after which a place that was not returned is free again. The queue itself counts the try as lost earlier. So
 * only the places of queues that a host of an older version has taken over expire, as it does not return them.
 */
export const OUTGOING_PLACE_MS_MAX = OUTGOING_TRY_MS_MAX + 300_000;

type Waiting = DeepReadonly<WaitingQueueRow>;

export class PlacesDraft extends Draft<OutgoingPlacesState, WaitingQueueRow, "expire"> {
  /** The waiting queues by turn. */
  readonly #waiting: Map<number, Waiting>;

  constructor(state: DeepReadonly<OutgoingPlacesState>, context: HandlerContext<WaitingQueueRow>) {
    super(state, context);
    this.#waiting = new Map([...context.rows].map(([turn, row]) => [Number(turn), row]));
  }

  /** Frees places of the queue. A place that has expired before its return is free already. */
  takeBack(queue: string, returned: number): void {
    let left = returned;
    const places = this.state.places.filter((place) => place.queue !== queue || left-- <= 0);
    if (places.length < this.state.places.length) this.state.places = places;
  }

  /** Sets how many places the queue waits for. A queue that waits already keeps its turn. */
  setWanted(queue: string, places: number): void {
    const turn = this.#turnOf(queue);
    if (places === 0) {
      if (turn !== undefined) this.#set(turn, undefined);
    } else if (turn !== undefined) this.#set(turn, { queue, places });
    else if (this.#waiting.size < OUTGOING_QUEUES_MAX) this.#append({ queue, places });
  }

  expire(): void {
    const isLate = ({ at }: { at: number }) => at + OUTGOING_PLACE_MS_MAX <= this.now;
    const places = this.state.places.filter((place) => !isLate(place));
    // A time in the future means that the clock was set back.
    this.state.places = places.map(({ queue, at }) => ({ queue, at: Math.min(at, this.now) }));
    delete this.state.expireAt;
  }

  /** Grants free places to the queues that wait, one place a turn. */
  grant(): void {
    const granted = new Map<string, number>();
    while (this.state.places.length < OUTGOING_PLACES_MAX && this.#waiting.size > 0) {
      const turn = Math.min(...this.#waiting.keys());
      const { queue, places } = this.#waiting.get(turn) as Waiting;
      this.#set(turn, undefined);
      if (places > 1) this.#append({ queue, places: places - 1 });
      this.state.places = [...this.state.places, { queue, at: this.now }];
      granted.set(queue, (granted.get(queue) ?? 0) + 1);
    }
    for (const [queue, places] of granted) {
      this.send(envelope(outgoingWebhook, queue, "placesGranted", { places }));
    }
    this.#watchExpiry();
  }

  /** While queues wait, the oldest place is taken back if it is not returned in time. */
  #watchExpiry(): void {
    const [oldest] = this.state.places;
    // A host of an older version may have lost the reminder.
    const isSet = (this.state.expireAt ?? 0) > this.now;
    if (this.#waiting.size === 0 || isSet || !oldest) return;
    this.state.expireAt = oldest.at + OUTGOING_PLACE_MS_MAX;
    this.remind("expire", this.state.expireAt);
  }

  #turnOf(queue: string): number | undefined {
    for (const [turn, waiting] of this.#waiting) if (waiting.queue === queue) return turn;
    return undefined;
  }

  #append(waiting: Waiting): void {
    this.#set(this.state.next, waiting);
    this.state.next += 1;
  }

  #set(turn: number, waiting: Waiting | undefined): void {
    if (waiting) this.#waiting.set(turn, waiting);
    else this.#waiting.delete(turn);
    this.write(String(turn), waiting ?? null);
  }
}
