import { expect } from "chai";
import { appKey } from "../../../../schemas/apps/app-names.ts";
import {
  APP_LOG_LINES_A_SECOND_MAX,
  APP_LOG_LINES_OF_ACCOUNT_MAX,
} from "../../../../schemas/apps/limits.ts";
import { appLogSubject, appLogsOf, STREAMS } from "../../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../../scripts/testing/actor-world.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { AppLog } from "./app-log.ts";

const LINE = { version: 1, level: "info", text: "hello" } as const;

describe("AppLog", function () {
  this.timeout(120_000);
  let world: World;
  let now = Date.UTC(2026, 10, 20);
  const clock = { now: () => now };
  before(async () => {
    world = await startWorld({ definitions: [] });
  });
  after(() => world[Symbol.asyncDispose]());

  const count = (subject: string) => world.count(STREAMS.appLogs, subject);
  const lastText = async (app: string) => {
    const last = await world.bus.readLast(STREAMS.appLogs, appLogSubject(app));
    return last?.json<{ text: string }>().text;
  };

  it("print() publishes as many lines of an app and of an account as it may in a second, and counts the others", async () => {
    const account = "1".repeat(32);
    const log = new AppLog(world.bus, clock);
    const names = ["a", "b", "c", "d", "e"].map((name) => appKey(account, name));
    for (const name of names) {
      for (let lines = 0; lines <= APP_LOG_LINES_A_SECOND_MAX; lines++) log.print(name, LINE);
    }
    const other = appKey("2".repeat(32), "a");
    log.print(other, LINE);
    await until(
      "the other account has its line",
      async () => (await count(appLogSubject(other))) === 1,
    );
    expect(await count(appLogsOf(account))).to.equal(APP_LOG_LINES_OF_ACCOUNT_MAX);
    now += 1_000;
    const [first = "", last = ""] = [names[0], names.at(-1)];
    for (const name of [first, last]) {
      log.print(name, { ...LINE, text: "goes on" });
      await until("it goes on", async () => (await lastText(name)) === "goes on");
    }
    expect(await count(appLogSubject(first))).to.equal(APP_LOG_LINES_A_SECOND_MAX + 2);
    // No line of the last app was published before.
    const [missing] = await texts(last);
    expect(missing).to.equal(`${APP_LOG_LINES_A_SECOND_MAX + 1} lines are missing here`);
  });

  it("print() drops the oldest lines of an account past its share, and no others", async () => {
    const LINES = 200;
    const BYTES = 4_000;
    const noisy = "3".repeat(32);
    const quiet = appKey("4".repeat(32), "a");
    const log = new AppLog(world.bus, clock, { accountBytesMax: LINES * BYTES });
    log.print(quiet, LINE);
    const text = "x".repeat(BYTES - 200);
    for (let at = 0; at < 20 * LINES; at++) {
      now += 1_000;
      log.print(appKey(noisy, `app-${at % 50}`), { ...LINE, text: `${at} ${text}` });
    }
    const last = appKey(noisy, "app-49");
    await until("the last line is stored", async () =>
      (await lastText(last))?.startsWith(`${20 * LINES - 1} `),
    );
    await until("the oldest are dropped", async () => (await count(appLogsOf(noisy))) <= LINES);
    expect(await count(appLogsOf(noisy))).to.be.at.least(LINES / 2);
    expect(await count(appLogSubject(quiet))).to.equal(1);
  });

  async function texts(app: string): Promise<string[]> {
    const subject = appLogSubject(app);
    const found: string[] = [];
    for (let next = 1; ; ) {
      const message = await world.bus.readNext(STREAMS.appLogs, subject, next);
      if (!message) return found;
      found.push(message.json<{ text: string }>().text);
      next = message.seq + 1;
    }
  }
});
