/**
 * Runs an agent's due work. While the agent is in memory, a timer starts the work. Otherwise the alarm that the host
 * keeps wakes the agent.
 */
import { REMINDER_AT_MAX } from "../../../schemas/limits.ts";
import type { AgentCore } from "./agent-core.ts";
import { clearTimeout, setImmediate, setTimeout } from "./native-timers.ts";
import { readValue, writeValue } from "./own-tables.ts";

/** A source of due work: schedules, the queue, or submissions. */
export interface DuePart {
  /** Returns the time when the next work is due (epoch ms). Running work counts as due from its start. */
  nextAt(): number | undefined;
  /** Begins due work that is not under way yet. */
  begin(): void;
  /** Resolves when no work is running. */
  settled(): Promise<unknown>;
}

const ALARM = "alarm";
/** Work that is due within this time keeps its agent in memory. */
const NEAR_MS = 10_000;
/**
 * The alarm for work that is due within NEAR_MS fires after this time. If the process has ended before it did the
 * work, another process then does it.
 */
const SAFETY_MS = 15_000;
/**
 * The longest wait of a timer. A timer measures how long the machine has run, and due times are times of day. When the
 * machine was suspended or its time of day was set forward, work is late by at most this wait.
 */
const DUE_CHECK_MS = 60_000;
/** Pause of an agent's due work after the agent did not start. */
const HOLD_MS = 5_000;
/** Time for which the handling of an alarm waits for its work to end, so that the next alarm is known then. */
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
  /**
   * The next due time, cached because it is read after every turn but rarely changes. Parts report changes with
   * `changed`.
   */
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

  /** Begins due work, and sets a timer for the work that is due next. */
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

  /** Handles the alarm, which may fire too early. Sets the alarm again if work remains. */
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
    // An alarm whose time has passed has fired or will never fire.
    const set = stored !== undefined && stored > now ? stored : undefined;
    if (next === undefined) {
      // An alarm that fires soon is left set, because cancelling it costs as much as an alarm without work.
      if (set === undefined || set < now + 4 * SAFETY_MS) return undefined;
      writeValue(this.#agent.database, ALARM, null);
      return null;
    }
    // Databases of earlier versions may have times that no reminder can have.
    const far = Math.min(Math.ceil(next), REMINDER_AT_MAX);
    const wanted = next > now + NEAR_MS ? far : now + SAFETY_MS;
    // The current alarm fires early enough. When it fires, it is set again for the wanted time.
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
