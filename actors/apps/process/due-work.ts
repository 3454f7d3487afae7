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
/**
 * The longest wait of a timer. A timer measures how long the machine has run, and due times are times of day. When the
 * machine was suspended or its time of day was set forward, work is late by at most this wait.
 */
const DUE_CHECK_MS = 60_000;
/** Pause before an agent that did not start is tried again. */
const HOLD_MS = 5_000;
/** How long an alarm waits for the next due time, so that the next alarm can be set. */
const WAKE_MS = 1_000;

/** The time of day and the timers, which a test can replace. */
export interface DueClock {
  now(): number;
  setTimeout(call: () => void, ms: number): NodeJS.Timeout;
  clearTimeout(timer: NodeJS.Timeout | undefined): void;
}

const ownClock: DueClock = { now: () => Date.now(), setTimeout, clearTimeout };

export class DueWork {
  readonly #agent: Pick<AgentCore, "noteIdle" | "database">;
  readonly #parts: DuePart[];
  readonly #clock: DueClock;
  #timer: NodeJS.Timeout | undefined;
  #isArmed = false;
  #isChanged = false;
  /** The next due time. It is read after every turn and rarely changes, so parts report changes. */
  #next: number | undefined;
  #isKnown = false;
  #isClosed = false;
  #heldUntil = 0;

  constructor(
    agent: Pick<AgentCore, "noteIdle" | "database">,
    parts: DuePart[],
    clock: DueClock = ownClock,
  ) {
    this.#agent = agent;
    this.#parts = parts;
    this.#clock = clock;
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
    const clock = this.#clock;
    clock.clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const next = this.nextAt();
    this.#agent.noteIdle();
    if (next === undefined) return;
    const at = Math.max(next, this.#heldUntil);
    if (at > clock.now()) {
      this.#armAt(at);
      return;
    }
    for (const part of this.#parts) part.begin();
    const later = this.#nextAfter(clock.now());
    if (later !== undefined) this.#armAt(later);
  }

  #armAt(at: number): void {
    const clock = this.#clock;
    const waitMs = Math.min(at - clock.now(), DUE_CHECK_MS);
    this.#timer = clock.setTimeout(() => this.arm(), waitMs);
  }

  /** Called when the agent did not start: pauses due work. */
  hold(): void {
    this.#heldUntil = this.#clock.now() + HOLD_MS;
  }

  nextAt(): number | undefined {
    if (!this.#isKnown) this.#next = earliest(this.#parts.map((part) => part.nextAt()));
    this.#isKnown = true;
    return this.#next;
  }

  get isNear(): boolean {
    const next = this.nextAt();
    return next !== undefined && next < this.#clock.now() + NEAR_MS;
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
    const now = this.#clock.now();
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
    this.#clock.clearTimeout(this.#timer);
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
