/**
 * Limits the events that one browser context may report. Without a limit, one page could block all other pages and
 * this process.
 */
import type { Clock } from "../../../runtime/lib/clock.ts";

/**
 * Limit of the events of one page: the initial budget, and the number that each second adds to it. 5,000 inline
 * images cause 25,000 events; a network request causes 8. Reading one event takes 20 µs, so a page can cost 1 s at
 * first and later 4 % of the time of this process.
 */
export const PAGE_EVENTS_AT_ONCE_MAX = 40_000;
export const PAGE_EVENTS_PER_SECOND_MAX = 2_000;
/**
 * An event counts once more for each block of this size in it, because reading such a block takes as long as one more
 * event.
 */
export const PAGE_EVENT_BYTES = 8 * 1024;
/**
 * A worker, or a frame of another site, counts as this many events, because thousands of them delay the browser for
 * seconds.
 */
export const PAGE_TARGET_EVENTS = 100;
/**
 * If a browser does not respond, a page with at least this many events may be the cause. Most pages have about a
 * hundred events.
 */
export const PAGE_EVENTS_BLAMED = 2_000;

/** Events come as `{"method":…,"params":…}`, those of a session with `,"sessionId":"…"}` at their end. */
const EVENT_START = '{"method":"';
const SESSION_START = ',"sessionId":"';
const ID_LENGTH = 32;
const SESSION_LENGTH = SESSION_START.length + ID_LENGTH + '"}'.length;
// A page cannot forge this text: in a message, the quotes in texts of the page are escaped.
const CONTEXT_START = '"browserContextId":"';
const METHOD_CHARS_MAX = 64;

/** Events that few callers need or none. Of the first two, a page can cause any number; each costs its parsing. */
const UNHEARD = new Set([
  "Runtime.consoleAPICalled",
  "Runtime.exceptionThrown",
  "Network.policyUpdated",
  "Network.resourceChangedPriority",
  "Page.frameResized",
  "Page.frameStartedNavigating",
]);
/** A page reports a dozen steps of its life. Puppeteer reads only these. */
const LIFECYCLE = "Page.lifecycleEvent";
const READ_STEPS = /"name":"(init|DOMContentLoaded|load)"/;
/** The name of the step comes before this position: the texts before it have a fixed length. */
const LIFECYCLE_CHARS = 200;
/** Events for new frames and workers. Each of them needs several calls to set it up. */
const BEGINNINGS = new Set(["Target.targetCreated", "Target.attachedToTarget"]);
/** Events for the end of targets. Their number is limited, because each target ends only once. */
const ENDS = new Set([
  "Target.detachedFromTarget",
  "Target.targetDestroyed",
  "Inspector.targetCrashed",
]);

interface Budget {
  left: number;
  countedAt: number;
  used: number;
  /** Called once, when the context has exceeded its budget. */
  spent: () => void;
  isSpent: boolean;
  /** A listener receives the events of the page that few callers need, such as console messages. */
  isHeard: boolean;
  sessions: Set<string>;
}

export class EventBudgets {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #contexts = new Map<string, Budget>();
  readonly #contextOfSession = new Map<string, string>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Starts to count the events of the context. `spent` is called when the context has exceeded its budget. */
  open(contextId: string, spent: () => void): void {
    const countedAt = this.#clock.monotonic();
    const left = PAGE_EVENTS_AT_ONCE_MAX;
    this.#contexts.set(contextId, {
      left,
      countedAt,
      used: 0,
      spent,
      isSpent: false,
      isHeard: false,
      sessions: new Set(),
    });
  }

  /** Resets the budget, because the context begins with another page. */
  renew(contextId: string): void {
    const budget = this.#contexts.get(contextId);
    if (budget === undefined || budget.isSpent) return;
    budget.left = PAGE_EVENTS_AT_ONCE_MAX;
    budget.countedAt = this.#clock.monotonic();
    budget.used = 0;
  }

  /** From now on, all events of the context are admitted, because a listener needs them. */
  hear(contextId: string): void {
    const budget = this.#contexts.get(contextId);
    if (budget !== undefined) budget.isHeard = true;
  }

  /** Removes the budget of a context that was closed. */
  close(contextId: string): void {
    for (const session of this.#contexts.get(contextId)?.sessions ?? [])
      this.#contextOfSession.delete(session);
    this.#contexts.delete(contextId);
  }

  /**
   * Ends the context that reported the most events, if they were many. It is the most likely reason why the browser
   * does not respond. Returns whether a context was ended.
   */
  blame(): boolean {
    const [busiest] = [...this.#contexts.values()]
      .filter(({ used, isSpent }) => !isSpent && used >= PAGE_EVENTS_BLAMED)
      .sort((a, b) => b.used - a.used);
    if (busiest === undefined) return false;
    end(busiest);
    return true;
  }

  /**
   * Whether the message is needed. The message is not parsed for this check, because parsing is the expensive part.
   */
  admits(message: Buffer): boolean {
    const start = message.toString("latin1", 0, EVENT_START.length + METHOD_CHARS_MAX);
    // A message that is no event is a reply. Replies are limited by the number of our own calls.
    if (!start.startsWith(EVENT_START)) return true;
    const method = start.slice(EVENT_START.length, start.indexOf('"', EVENT_START.length));
    const contextId = this.#contextOf(message);
    const budget = contextId === undefined ? undefined : this.#contexts.get(contextId);
    if (contextId !== undefined && budget !== undefined) {
      const events = BEGINNINGS.has(method) ? PAGE_TARGET_EVENTS : 1;
      this.#charge(budget, events + message.length / PAGE_EVENT_BYTES);
      if (budget.isSpent) return ENDS.has(method);
      if (method === "Target.attachedToTarget") this.#learn(message, contextId, budget);
    }
    if (budget?.isHeard === true) return true;
    if (method === LIFECYCLE)
      return READ_STEPS.test(message.toString("latin1", 0, LIFECYCLE_CHARS));
    return !UNHEARD.has(method);
  }

  #charge(budget: Budget, cost: number): void {
    const now = this.#clock.monotonic();
    const gained = ((now - budget.countedAt) / 1_000) * PAGE_EVENTS_PER_SECOND_MAX;
    budget.left = Math.min(PAGE_EVENTS_AT_ONCE_MAX, budget.left + gained) - cost;
    budget.countedAt = now;
    budget.used += cost;
    if (budget.left < 0) end(budget);
  }

  #contextOf(message: Buffer): string | undefined {
    const end = message.toString("latin1", Math.max(0, message.length - SESSION_LENGTH));
    if (end.startsWith(SESSION_START)) {
      const session = end.slice(SESSION_START.length, -2);
      const known = this.#contextOfSession.get(session);
      if (known !== undefined) return known;
    }
    const start = message.lastIndexOf(CONTEXT_START);
    if (start < 0) return undefined;
    const id = start + CONTEXT_START.length;
    return message.toString("latin1", id, id + ID_LENGTH);
  }

  /**
   * Records the session of a frame of another site or of a worker, because they report their events in separate
   * sessions.
   */
  #learn(message: Buffer, contextId: string, budget: Budget): void {
    const { params } = JSON.parse(message.toString("utf8"));
    this.#contextOfSession.set(params.sessionId, contextId);
    budget.sessions.add(params.sessionId);
  }
}

function end(budget: Budget): void {
  if (budget.isSpent) return;
  budget.isSpent = true;
  budget.spent();
}
