/** What is to be delivered to one actor, in its order; mail that goes by MAIL after all leaves it. */
import type { Delivery } from "./incoming.ts";

export class DeliveryQueue {
  #waiting: Delivery[] = [];

  get isEmpty(): boolean {
    return this.#waiting.every(isOver);
  }

  push(delivery: Delivery): void {
    this.#waiting.push(delivery);
  }

  /** The one whose turn it is. It stays until it is shifted. */
  peek(): Delivery | undefined {
    while (this.#waiting[0] && isOver(this.#waiting[0])) this.#waiting.shift();
    return this.#waiting[0];
  }

  shift(): Delivery | undefined {
    return this.#waiting.shift();
  }

  /** Mail of this host goes by MAIL, which keeps it for as long as it takes. */
  giveUpDirect(): void {
    for (const { direct, tries } of this.#waiting) direct?.giveUp(tries);
    this.#waiting = this.#waiting.filter(({ direct }) => !direct);
  }

  /** Those that were delivered and come back, and then these. */
  behind(delivered: readonly Delivery[]): Delivery[] {
    return [...delivered, ...this.#waiting].filter((delivery) => !isOver(delivery));
  }
}

const isOver = ({ direct }: Delivery) => direct?.status === "over";
