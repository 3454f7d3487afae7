import { expect } from "chai";
import { BROWSER_TIME_CHECK_MS } from "../../../../schemas/rendering/limits.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { taskContext } from "../../../../scripts/testing/task-context.ts";
import { until } from "../../../../scripts/testing/until.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import { AccountTime, type Hold } from "./account-time.ts";

describe("AccountTime", () => {
  it("within() counts a page's time until it leaves its browser, not while its task waits for more", async () => {
    const clock = new SkippingClock({ stands: true });
    const time = new AccountTime({ clock, limitMs: 60_000 });
    const untold: number[] = [];
    const call = (async (_contract: unknown, _key: string, _message: string, given: object) => {
      untold.push((given as { untoldMs: number }).untoldMs);
      return {};
    }) as TaskContext["call"];
    const begin = () => {
      const started = Promise.withResolvers<Hold>();
      const waiting = Promise.withResolvers<void>();
      const ended = time.within("a", taskContext({ call }), async (_signal, hold) => {
        started.resolve(hold);
        await waiting.promise;
      });
      const end = async () => {
        waiting.resolve();
        await ended;
      };
      return { started: started.promise, end };
    };
    const nextCheck = async (checks: number) => {
      await until("the task waits", () => clock.isAwaited(BROWSER_TIME_CHECK_MS));
      clock.skip(BROWSER_TIME_CHECK_MS);
      await until("the time is checked", () => untold.length === checks);
    };

    const first = begin();
    const endPage = (await first.started)();
    clock.skip(300);
    endPage();
    await nextCheck(2);
    // A further page of the same task, as a PDF of several sources has.
    const endNext = (await first.started)();
    await nextCheck(3);
    endNext();
    endPage();
    await nextCheck(4);
    const both = 300 + BROWSER_TIME_CHECK_MS;
    expect(untold).to.deep.equal([0, 300, both, both]);
    // The task reports its time when it ends, so the time is not told twice.
    await first.end();
    const second = begin();
    await second.started;
    await second.end();
    expect(untold.at(-1)).to.equal(0);
  });
});
