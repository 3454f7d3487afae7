/**
 * The deliveries that wait for one actor, in their order. Mail that was handed over within the host leaves the queue
 * when it goes through MAIL instead.
 */
import type { Delivery } from "./incoming.ts";

export class DeliveryQueue {
  #waiting: Delivery[] = [];

  get isEmpty(): boolean {
    return this.#waiting.every(isOver);
  }

  push(delivery: Delivery): void {
    this.#waiting.push(delivery);
  }

  /** The next delivery. It stays in the queue until it is shifted. */
  peek(): Delivery | undefined {
    while (this.#waiting[0] && isOver(this.#waiting[0])) this.#waiting.shift();
    return this.#waiting[0];
  }

  shift(): Delivery | undefined {
    return this.#waiting.shift();
  }

  /** Moves the direct mail within the host to MAIL, which keeps it until the actor can handle it. */
  giveUpDirect(): void {
    for (const { direct, tries } of this.#waiting) direct?.giveUp(tries);
    this.#waiting = this.#waiting.filter(({ direct }) => !direct);
  }

  /** Returns the delivered messages that must be delivered again, and then the waiting messages. */
  behind(delivered: readonly Delivery[]): Delivery[] {
    return [...delivered, ...this.#waiting].filter((delivery) => !isOver(delivery));
  }
}

const isOver = ({ direct }: Delivery) => direct?.status === "over";
