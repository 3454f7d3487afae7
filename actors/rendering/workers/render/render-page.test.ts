import { expect } from "chai";
import { ContentRequest } from "../../../../schemas/rendering/http/page-calls.ts";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import type { ThreadCaller } from "../../lib/threads/thread-pool.ts";
import type { Hold } from "./account-time.ts";
import { renderPage } from "./render-page.ts";

const DEADLINE_MS = 50_000;

describe("renderPage", function () {
  this.timeout(60_000);
  let pool: BrowserPool;
  let site: WebSite;
  let clock: SkippingClock;

  beforeEach(async () => {
    pool = openPool();
    clock = new SkippingClock();
    site = await WebSite.start();
    await pool.start();
  });
  afterEach(() => Promise.all([pool.close(), site[Symbol.asyncDispose]()]));

  /** Renders a page whose output waits for `answer`, as one that waits for an AI model does. */
  function render(
    answer: (caller: ThreadCaller) => Promise<string>,
    { signal = new AbortController().signal, hold }: { signal?: AbortSignal; hold?: Hold } = {},
  ) {
    const url = site.page("/", "<p>page");
    const task = {
      ...{ account: "a", action: "read" as const, endsAt: clock.monotonic() + DEADLINE_MS },
      parameters: ContentRequest.parse({ url }),
      hold,
    };
    const output = async () => (caller: ThreadCaller) => abortable(answer(caller), caller.signal);
    return renderPage(pool, task, { output, signal, clock });
  }

  it("keeps the answer of a page whose browser ended after the page was released", async () => {
    let questions = 0;
    const { answer, browserMs } = await render(async () => {
      questions += 1;
      await until("the page has left its browser", () => pool.contextsInUse === 0);
      const { pids } = pool;
      for (const pid of pids) process.kill(-pid, "SIGKILL");
      await until("the browser has ended", () => pool.pids.every((pid) => !pids.includes(pid)));
      return "answer";
    });
    expect([answer, questions]).to.deep.equal(["answer", 1]);
    expect(site.paths.filter((path) => path === "/")).to.have.length(1);
    expect(browserMs).to.be.above(0);
  });

  it("counts no browser time while it waits after the release of the page", async () => {
    const steps: string[] = [];
    const hold = () => {
      steps.push("held");
      return () => steps.push("left");
    };
    await render(
      async () => {
        steps.push("waits");
        return "answer";
      },
      { hold },
    );
    expect(steps.slice(0, 3)).to.deep.equal(["held", "left", "waits"]);
  });

  it("reports a fault after the release of the page as it is, not as one of the page", async () => {
    const fault = new Error("the thread has ended");
    const thrown = await render(async () => {
      await until("the page has left its browser", () => pool.contextsInUse === 0);
      throw fault;
    }).catch((error: unknown) => error);
    expect(thrown).to.equal(fault);
  });

  it("ends the work after the release of the page when its caller leaves or its deadline passes", async () => {
    const leaving = new AbortController();
    const cancelled = await refusalOf(
      render(
        () => {
          leaving.abort();
          return new Promise(() => {});
        },
        { signal: leaving.signal },
      ),
    );
    expect(cancelled.code).to.equal("cancelled");
    const late = await refusalOf(
      render(() => {
        clock.skip(DEADLINE_MS);
        return new Promise(() => {});
      }),
    );
    expect(late.code).to.equal("deadline_exceeded");
  });
});
