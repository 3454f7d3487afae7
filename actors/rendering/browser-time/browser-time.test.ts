import { expect } from "chai";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { type Handled, runHandler } from "../../../scripts/testing/run-handler.ts";
import { BrowserTimeState, browserTimeActor } from "./browser-time.ts";
import {
  COUNTED_MS,
  COUNTED_OF_ROW_MAX,
  COUNTED_ROWS_MAX,
  type CountedRow,
} from "./counted-tasks.ts";
import { USAGE_DAYS_MAX } from "./usage.ts";

const NOON = Date.UTC(2026, 10, 20, 12);
const DAY_MS = 86_400_000;
const { initial } = browserTimeActor;

describe("browser time", () => {
  it("admit() admits below the limit and refuses at it until UTC midnight", () => {
    const below = run("used", initial, { ms: 599_999, taskId: "a" }).state;
    expect(run("admit", below, { limitMs: 600_000 })).to.deep.include({
      changed: false,
      reply: { usedMs: 599_999 },
    });
    const at = run("used", below, { ms: 1, taskId: "b" }).state;
    const refused = refusal(() => run("admit", at, { limitMs: 600_000 }));
    expect(refused.code).to.equal("browser_time_exceeded");
    expect(refused.details).to.deep.equal({ retryAfterS: 12 * 3_600 });
    expect(run("admit", at, { limitMs: 600_000 }, NOON + DAY_MS / 2).reply.usedMs).to.equal(0);
  });

  it("admit() counts the unreported usage of its caller", () => {
    const { state } = run("used", initial, { ms: 5, taskId: "a" });
    const ask = (untoldMs: number) => run("admit", state, { limitMs: 10, untoldMs });
    expect(ask(4).reply).to.deep.equal({ usedMs: 9 });
    expect(refusal(() => ask(5)).code).to.equal("browser_time_exceeded");
  });

  it("used() counts a task that reports its time in parts as one", () => {
    const part = { ms: 5, taskId: "a.1", isPart: true } as const;
    const once = run("used", initial, part).state;
    const { state } = run("used", once, { ms: 3, taskId: "a" });
    expect(run("getUsage", state, {}).reply.today).to.include({ ms: 8, tasks: 1 });
  });

  it("admit() treats 0 as no limit", () => {
    const { state } = run("used", initial, { ms: 10 * DAY_MS, taskId: "a" });
    expect(run("admit", state, { limitMs: 0 }).reply.usedMs).to.equal(10 * DAY_MS);
  });

  it("used() counts a task once, however many others are counted until its report is repeated", () => {
    const account = new Account();
    account.used("a");
    for (let i = 0; i < 20 * COUNTED_OF_ROW_MAX; i++) account.used(`b${i}`);
    const { usage } = account.state;
    expect(account.used("a", NOON + COUNTED_MS - 1)).to.equal(false);
    expect(account.used("b0", NOON + COUNTED_MS - 1)).to.equal(false);
    expect(account.state.usage).to.equal(usage);
    expect(usage[0]?.tasks).to.equal(20 * COUNTED_OF_ROW_MAX + 1);
    account.used("c", NOON + COUNTED_MS);
    expect(account.rows.size).to.equal(1);
    expect(account.used("a", NOON + COUNTED_MS)).to.equal(true);
  });

  it("used() remembers a limited number of tasks, the newest", () => {
    const account = new Account();
    const ids = " 123456789".repeat(COUNTED_OF_ROW_MAX - 1);
    account.used("a");
    const first = account.rows.get("counted/1")?.ids ?? "";
    for (let i = 1; i <= COUNTED_ROWS_MAX; i++) {
      account.rows.set(`counted/${i}`, { lastAt: NOON, ids: i === 1 ? first + ids : ids });
    }
    account.used("b");
    expect(account.rows.size).to.equal(COUNTED_ROWS_MAX);
    expect(account.used("a")).to.equal(false);
    account.used("c");
    expect(account.rows.size).to.equal(COUNTED_ROWS_MAX);
    expect(account.used("b")).to.equal(false);
    expect(account.used("a")).to.equal(true);
  });

  it("dropCounted() removes the tasks of an account that reports no more, half an hour after the last", () => {
    const account = new Account();
    for (let i = 0; i < 3 * COUNTED_OF_ROW_MAX; i++) account.used(`a${i}`);
    expect(account.dropAt).to.equal(NOON + COUNTED_MS);
    account.used("b", NOON + 1_000);
    account.drop(NOON + COUNTED_MS);
    expect([...account.rows.keys()]).to.deep.equal(["counted/4"]);
    expect(account.used("b", NOON + COUNTED_MS)).to.equal(false);
    account.used("c", NOON + 2_000);
    account.drop();
    expect(account.rows.size).to.equal(1);
    account.drop();
    expect([account.rows.size, account.dropAt]).to.deep.equal([0, undefined]);
    account.drop(NOON + 2 * COUNTED_MS);
    expect(account.dropAt).to.equal(undefined);
  });

  it("dropCounted() removes as many rows as there may be", () => {
    const account = new Account();
    account.used("a");
    for (let i = 2; i <= COUNTED_ROWS_MAX; i++) {
      account.rows.set(`counted/${i}`, { lastAt: NOON, ids: " 123456789" });
    }
    for (let times = 0; account.dropAt !== undefined; times++) {
      expect(times).to.be.below(COUNTED_ROWS_MAX);
      account.drop();
    }
    expect(account.rows.size).to.equal(0);
  });

  it("used() recognizes the tasks that an earlier version counted", () => {
    const account = new Account({ usage: [], countedTasks: ["old", "older"] });
    expect(account.used("older")).to.equal(false);
    for (const task of ["a", "b", "c"]) expect(account.used(task)).to.equal(true);
    expect(account.state.countedTasks).to.deep.equal([]);
  });

  it("used() keeps a day readable, whatever time was reported", () => {
    const report = { ms: Number.MAX_SAFE_INTEGER, taskId: "a" };
    const once = run("used", initial, report).state;
    const { state } = run("used", once, { ...report, taskId: "b" });
    expect(BrowserTimeState.parse(state).usage[0]?.ms).to.equal(Number.MAX_SAFE_INTEGER);
  });

  it("admit() and getUsage() store nothing", () => {
    expect(run("admit", initial, { limitMs: 1 }).changed).to.equal(false);
    expect(run("getUsage", initial, {}).changed).to.equal(false);
  });

  it("used() keeps the shown days, oldest first, whatever the order of reports", () => {
    let state: DeepReadonly<BrowserTimeState> = initial;
    for (let day = 0; day <= USAGE_DAYS_MAX; day++) {
      state = run("used", state, { ms: day, taskId: `d${day}` }, NOON + day * DAY_MS).state;
    }
    // A host whose clock is a day behind.
    const late = NOON + (USAGE_DAYS_MAX - 1) * DAY_MS;
    state = run("used", state, { ms: 100, taskId: "late" }, late).state;
    expect(state.usage).to.have.length(USAGE_DAYS_MAX);
    expect(state.usage[0]).to.deep.equal({ date: "2026-11-21", ms: 1, tasks: 1 });
    const dates = state.usage.map(({ date }) => date);
    expect(dates).to.deep.equal(dates.toSorted());
    expect(state.usage.at(-2)).to.include({ ms: USAGE_DAYS_MAX - 1 + 100, tasks: 2 });
  });

  it("getUsage() shows today even without usage", () => {
    const { state } = run("used", initial, { ms: 5, taskId: "a" });
    const { reply } = run("getUsage", state, {}, NOON + DAY_MS);
    expect(reply.today).to.deep.equal({ date: "2026-11-21", ms: 0, tasks: 0 });
    expect(reply.days).to.deep.equal([{ date: "2026-11-20", ms: 5, tasks: 1 }]);
    expect(reply.resetsAt).to.equal(Date.UTC(2026, 10, 22));
  });
});

/** An account whose reports are counted one after the other, with its rows. */
class Account {
  state: DeepReadonly<BrowserTimeState>;
  readonly rows = new Map<string, DeepReadonly<CountedRow>>();
  /** When the reminder to remove rows is due. */
  dropAt: number | undefined;

  constructor(state: DeepReadonly<BrowserTimeState> = initial) {
    this.state = state;
  }

  /** Reports a millisecond of a task. Returns whether it was counted. */
  used(taskId: string, now = NOON): boolean {
    const { rows, state } = this;
    const next = runHandler(browserTimeActor, "used", state, { ms: 1, taskId }, { now, rows });
    this.#take(next);
    return next.changed;
  }

  /** Delivers the reminder to remove rows; by default when it is due. */
  drop(now = this.dropAt ?? 0): void {
    const { rows, state } = this;
    this.dropAt = undefined;
    this.#take(runHandler(browserTimeActor, "dropCounted", state, {}, { now, rows }));
  }

  #take({ state, rows, remind }: Handled<BrowserTimeState, unknown>): void {
    this.state = state;
    for (const [name, row] of Object.entries(rows)) {
      if (row === null) this.rows.delete(name);
      else this.rows.set(name, row as CountedRow);
    }
    this.dropAt = remind.dropCounted ?? this.dropAt;
  }
}

function run<N extends keyof typeof browserTimeActor.contract.messages>(
  message: N,
  state: DeepReadonly<BrowserTimeState>,
  input: Parameters<(typeof browserTimeActor.handlers)[N]>[1],
  now = NOON,
) {
  return runHandler(browserTimeActor, message, state, input, { now });
}
