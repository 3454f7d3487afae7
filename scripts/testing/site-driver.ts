/** Runs a site actor without a bus. Keeps its state and rows between messages, the test's clock, and its sends. */
import { ARRIVAL_MS, siteActor } from "../../actors/crawl/site/site.ts";
import type { SiteRow, SiteState } from "../../actors/crawl/site/site-state.ts";
import type { DeepReadonly, Envelope, Input, Reply } from "../../schemas/contract.ts";
import type { RobotsRules } from "../../schemas/crawl/robots-rules.ts";
import type { RobotsOutcome, Scheme } from "../../schemas/crawl/site.ts";
import { runHandler } from "./run-handler.ts";

type SiteMessages = typeof siteActor.contract.messages;

export class SiteDriver {
  readonly host: string;
  /** The time of a clock that is never set. */
  now: number;
  /** How far the site's time of day is ahead of `now`. */
  aheadMs = 0;
  /** The host process that runs the site. If undefined, it cannot notice that the time of day is set. */
  process: string | undefined;
  state: DeepReadonly<SiteState> = siteActor.initial;
  readonly rows = new Map<string, DeepReadonly<SiteRow>>();
  /**
   * The sends of the last message. `changed` says whether the last message changed the state, and `lookAt` is the
   * latest time of the reminder `look`, as a time of day.
   */
  sent: readonly Envelope[] = [];
  changed = false;
  lookAt: number | undefined;
  /** All live updates. */
  readonly shown: unknown[] = [];
  #ids = 0;

  constructor({ host = "a.example", now = 1_000_000 } = {}) {
    this.host = host;
    this.now = now;
  }

  tell<N extends keyof SiteMessages & string>(
    message: N,
    input: Input<SiteMessages[N]>,
  ): Reply<SiteMessages[N]> {
    const { process: id } = this;
    const handled = runHandler(siteActor, message, this.state, input, {
      key: this.host,
      now: this.now + this.aheadMs,
      ...(id !== undefined && { steady: () => ({ id, aheadMs: this.aheadMs }) }),
      rows: this.rows,
      newId: () => hex(++this.#ids),
    });
    this.state = handled.state;
    if (handled.forgotten) this.rows.clear();
    for (const [name, row] of Object.entries(handled.rows)) {
      if (row === null) this.rows.delete(name);
      else this.rows.set(name, row as SiteRow);
    }
    this.sent = handled.send;
    this.changed = handled.changed;
    if (handled.live !== undefined) this.shown.push(handled.live);
    const { look } = handled.remind;
    if (typeof look === "number") this.lookAt = look;
    return handled.reply;
  }

  /** Returns the inputs of those sends of the last message that have this message name. */
  sentAs<T = Record<string, unknown>>(message: string): T[] {
    return this.sent.filter((one) => one.message === message).map(({ input }) => input as T);
  }

  /**
   * Fetches robots.txt as a worker does: begins the turn, waits for the permitted time, and reports the outcome.
   * Returns the turn, which the caller must finish.
   */
  fetched(outcome: RobotsOutcome, scheme: Scheme = "https"): string {
    const turn = this.state.robots[scheme]?.fetch?.turn;
    if (turn === undefined) throw new Error(`Cannot answer: no ${scheme} robots.txt is fetched`);
    const urls = [`${scheme}://${this.host}/robots.txt`];
    const begun = this.tell("begin", { turn, urls, intent: { purposes: ["search"] } });
    if (begun.state !== "go") throw new Error(`Cannot fetch robots.txt: ${begun.state}`);
    this.now += begun.waitMs;
    this.tell("requestStarted", { turn });
    // The departure counts from the end of its millisecond, plus the time to arrive.
    this.now += 1 + ARRIVAL_MS;
    this.tell("robotsFetched", { scheme, turn, outcome });
    return turn;
  }
}

/** Returns the number as an id of 32 hexadecimal digits. */
export const hex = (number: number) => number.toString(16).padStart(32, "0");

export const rulesOutcome = (rules: Partial<RobotsRules> = {}): RobotsOutcome => ({
  kind: "rules",
  rules: { rules: [], contentSignal: {}, sitemaps: [], truncated: false, ...rules },
});
