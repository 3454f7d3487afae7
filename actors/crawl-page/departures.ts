/**
 * What workers tell each other while nobody answers for a site: which requests have left, from which of its places, and
 * that its host wants to be left alone. Whoever follows such a request goes in time, and nobody any more at such a host.
 */
import { z } from "zod";
import { LEFT_KEPT_MS, SITE_AWAY_MS } from "../../schemas/crawl-limits.ts";
import { parseJson } from "../../schemas/parse-json.ts";
import { PlacedTurn } from "../../schemas/site.ts";
import { crawlDepartureSubject } from "../../schemas/subjects.ts";
import type { Bus } from "../runtime/bus.ts";
import type { Clock } from "../runtime/clock.ts";

const Told = z.union([
  PlacedTurn.extend({ agoMs: z.number().min(0) }),
  z.object({ host: z.string(), awayMs: z.number().min(0) }),
]);
type Told = z.infer<typeof Told>;

export interface DeparturesParts {
  bus: Pick<Bus, "connection" | "isAway">;
  clock: Clock;
}

export class Departures implements Disposable {
  readonly #parts: DeparturesParts;
  readonly #subscription: { unsubscribe(): void };
  /** By the monotonic clock: since when a request has left, and until when a host is left alone. */
  readonly #left = new Map<string, number>();
  readonly #away = new Map<string, number>();
  readonly #waiting = new Map<string, Set<(leftAt: number) => void>>();

  constructor(parts: DeparturesParts) {
    this.#parts = parts;
    this.#subscription = parts.bus.connection.subscribe(crawlDepartureSubject, {
      callback: (error, message) => {
        const told = error ? undefined : Told.safeParse(parseJson(message.string()));
        if (told?.success) this.#hear(told.data);
      },
    });
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }

  /** The request has left; it is said until the site has `heard` of it, and not where that is soon. */
  async tellLeft({ turn, place }: PlacedTurn, leftAt: number, heard: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!heard.aborted && clock.monotonic() - leftAt < LEFT_KEPT_MS) {
      await clock.wait(SITE_AWAY_MS, heard);
      // Rounded up it would have left before it did.
      const agoMs = Math.floor(clock.monotonic() - leftAt);
      if (!heard.aborted) this.#say({ turn, place, agoMs });
    }
  }

  tellAway(host: string, awayMs: number): void {
    this.#say({ host, awayMs });
  }

  /** When the request surely had left, once that is said. Never, unless it is; rejects with the signal's reason. */
  hasLeft(placed: PlacedTurn, signal: AbortSignal): Promise<number> {
    const key = keyOf(placed);
    return new Promise((resolve, reject) => {
      const known = this.#left.get(key);
      if (known !== undefined) return resolve(known);
      const waiting = this.#waiting.get(key) ?? new Set();
      this.#waiting.set(key, waiting.add(resolve));
      const leave = () => {
        waiting.delete(resolve);
        if (waiting.size === 0) this.#waiting.delete(key);
        reject(signal.reason);
      };
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** Its host has lately asked to be left alone, which only the site knows how to do. */
  isAway(host: string): boolean {
    return (this.#away.get(host) ?? 0) > this.#parts.clock.monotonic();
  }

  #say(told: Told): void {
    const { bus } = this.#parts;
    if (!bus.isAway) bus.connection.publish(crawlDepartureSubject, JSON.stringify(told));
  }

  #hear(told: Told): void {
    const now = this.#parts.clock.monotonic();
    this.#forget(now);
    if ("awayMs" in told) {
      this.#away.set(told.host, now + Math.max(told.awayMs, LEFT_KEPT_MS));
      return;
    }
    const key = keyOf(told);
    // It has been on its way since.
    const leftAt = now - told.agoMs;
    if (!this.#left.has(key)) this.#left.set(key, leftAt);
    for (const resolve of this.#waiting.get(key) ?? []) resolve(leftAt);
    this.#waiting.delete(key);
  }

  #forget(now: number): void {
    for (const [key, leftAt] of this.#left) if (now - leftAt > LEFT_KEPT_MS) this.#left.delete(key);
    for (const [host, until] of this.#away) if (now > until) this.#away.delete(host);
  }
}

const keyOf = ({ turn, place }: PlacedTurn) => `${turn} ${place}`;
