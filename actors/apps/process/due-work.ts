/**
 * Runs an agent's due work: at once or by a timer while the agent is in memory, and by the alarm that the host keeps
 * otherwise.
 */
import type { AgentCore } from "./agent-core.ts";
import { clearTimeout, setImmediate, setTimeout } from "./native-timers.ts";
import { readValue, writeValue } from "./own-tables.ts";

/** A source of due work: schedules, the queue, or submissions. */
export interface DuePart {
  /** Returns when the next work is due (epoch ms). Work under way is due from its start on. */
  nextAt(): number | undefined;
  /** Begins due work that is not under way yet. */
  begin(): void;
  /** Resolves when nothing is under way. */
  settled(): Promise<unknown>;
}

const ALARM = "alarm";
/** Work that is due within this time waits in memory. */
const NEAR_MS = 10_000;
/** If the process ends before it has done due work, the alarm fires after this time and another process does it. */
const SAFETY_MS = 15_000;
/** The longest that a timer can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** Pause before an agent that did not start is tried again. */
const HOLD_MS = 5_000;
/** How long an alarm waits for the next due time, so that the next alarm can be set. */
const WAKE_MS = 1_000;

export class DueWork {
  readonly #agent: AgentCore;
  readonly #parts: DuePart[];
  #timer: NodeJS.Timeout | undefined;
  #isArmed = false;
  #isChanged = false;
  /** The next due time. It is read after every turn and rarely changes, so parts report changes. */
  #next: number | undefined;
  #isKnown = false;
  #isClosed = false;
  #heldUntil = 0;

  constructor(agent: AgentCore, parts: DuePart[]) {
    this.#agent = agent;
    this.#parts = parts;
  }

  /** Called when the next due time has changed. */
  changed(): void {
    this.#isChanged = true;
    this.#isKnown = false;
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      this.arm();
    });
  }

  /** Begins what is due, and sets a timer for what comes next. */
  arm(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const next = this.nextAt();
    this.#agent.noteIdle();
    if (next === undefined) return;
    const wait = Math.max(next, this.#heldUntil) - Date.now();
    if (wait > 0) {
      this.#timer = setTimeout(() => this.arm(), Math.min(wait, TIMER_MS_MAX));
      return;
    }
    for (const part of this.#parts) part.begin();
    const later = this.#nextAfter(Date.now());
    if (later === undefined) return;
    this.#timer = setTimeout(() => this.arm(), Math.min(later - Date.now(), TIMER_MS_MAX));
  }

  /** Called when the agent did not start: pauses due work. */
  hold(): void {
    this.#heldUntil = Date.now() + HOLD_MS;
  }

  nextAt(): number | undefined {
    if (!this.#isKnown) this.#next = earliest(this.#parts.map((part) => part.nextAt()));
    this.#isKnown = true;
    return this.#next;
  }

  get isNear(): boolean {
    const next = this.nextAt();
    return next !== undefined && next < Date.now() + NEAR_MS;
  }

  /** Handles the alarm, which may fire too early. Sets it again if any work is left. */
  async wake(): Promise<void> {
    if (this.#setAt() !== undefined) writeValue(this.#agent.database, ALARM, null);
    this.changed();
    this.arm();
    const settled = Promise.all(this.#parts.map((part) => part.settled()));
    let timer: NodeJS.Timeout | undefined;
    const tired = new Promise((resolve) => {
      timer = setTimeout(resolve, WAKE_MS);
    });
    await Promise.race([settled, tired]);
    clearTimeout(timer);
  }

  /** Returns the alarm's new time for the next record; undefined leaves the alarm as it is. */
  alarm(): number | null | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = false;
    const now = Date.now();
    const next = this.nextAt();
    const stored = this.#setAt();
    // An alarm in the past has fired or never will.
    const set = stored !== undefined && stored > now ? stored : undefined;
    if (next === undefined) {
      // A near alarm is left as it is, because cancelling it costs as much as an alarm without work.
      if (set === undefined || set < now + 4 * SAFETY_MS) return undefined;
      writeValue(this.#agent.database, ALARM, null);
      return null;
    }
    const wanted = next > now + NEAR_MS ? Math.ceil(next) : now + SAFETY_MS;
    // The current alarm fires early enough, and is set again then.
    if (set !== undefined && set <= wanted) return undefined;
    writeValue(this.#agent.database, ALARM, wanted);
    return wanted;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #nextAfter(now: number): number | undefined {
    return earliest(
      this.#parts.map((part) => {
        const at = part.nextAt();
        return at === undefined || at <= now ? undefined : at;
      }),
    );
  }

  #setAt(): number | undefined {
    const value = readValue(this.#agent.database, ALARM);
    return typeof value === "number" ? value : undefined;
  }
}

function earliest(times: (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
