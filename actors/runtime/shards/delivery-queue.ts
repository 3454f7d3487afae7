/** The deliveries that wait for one actor, in order. Mail within the host leaves the queue when MAIL takes it over. */
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

  /** Hands mail within the host to MAIL, which keeps it for as long as it takes. */
  giveUpDirect(): void {
    for (const { direct, tries } of this.#waiting) direct?.giveUp(tries);
    this.#waiting = this.#waiting.filter(({ direct }) => !direct);
  }

  /** The delivered ones that are to be delivered again, and then those that wait. */
  behind(delivered: readonly Delivery[]): Delivery[] {
    return [...delivered, ...this.#waiting].filter((delivery) => !isOver(delivery));
  }
}

const isOver = ({ direct }: Delivery) => direct?.status === "over";
