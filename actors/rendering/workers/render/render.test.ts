import { expect } from "chai";
import { ActorError } from "../../../../schemas/errors.ts";
import { TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { ScreenshotRequest } from "../../../../schemas/rendering/http/screenshot.ts";
import { openPool, renderParts } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { taskContext } from "../../../../scripts/testing/task-context.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import { BrowserDiedError } from "../../lib/browser/browser-died-error.ts";
import { renderWorker } from "./render.ts";

const LIMITS = { interactive: 1, batch: 1, browserMsPerDay: 0 };

describe("renderWorker", function () {
  this.timeout(60_000);

  it("pdf() has its task tried again when the browser died, and at the last try says what was used", async () => {
    await using pool = openPool();
    await using site = await WebSite.start();
    const url = site.page("/", () => {
      setTimeout(() => {
        for (const pid of pool.pids) process.kill(-pid, "SIGKILL");
      }, 100);
    });
    const { handlers, failures } = renderWorker(renderParts(pool), LIMITS);
    const accountId = "a".repeat(32);
    const input = { account: accountId, parameters: PdfRequest.parse({ url }) };
    const { signal } = new AbortController();
    const run = (attempt: number) => handlers.pdf(input, taskContext({ signal, attempt }));
    const again = await Promise.resolve(run(TASK_TRIES_MAX - 1)).catch((error: unknown) => error);
    expect(again).to.be.instanceOf(BrowserDiedError);
    const refused = await refusalOf(Promise.resolve(run(TASK_TRIES_MAX)));
    expect(refused.code).to.equal("browser_crashed");
    expect(refused.details.browserMs).to.be.within(100, 50_000);
    const sent = failures.pdf?.(input, refused, { id: "task", key: "" });
    expect(sent).to.have.nested.property("[0].input.ms", refused.details.browserMs);
  });

  it("pdf() has a page whose renderer crashed tried once more, and then says so", async () => {
    await using pool = openPool();
    await using site = await WebSite.start();
    const url = site.page("/", `<img src="/crash.png">`);
    const newContext = pool.newContext.bind(pool);
    pool.newContext = async (signal) => {
      const context = await newContext(signal);
      // Crashes the renderer only when the page requests its image: from then on its document is in the renderer that
      // shows it.
      const crash = () => void context.session.send("Page.crash").catch(() => {});
      site.page("/crash.png", crash);
      return context;
    };
    const { handlers } = renderWorker(renderParts(pool), LIMITS);
    const parameters = PdfRequest.parse({ url, gotoOptions: { waitUntil: "load" } });
    const input = { account: "a", parameters };
    await pool.start();
    const [browser] = pool.pids;
    const run = (attempt: number) => Promise.resolve(handlers.pdf(input, taskContext({ attempt })));
    const again = await run(1).catch((error: unknown) => error);
    expect(again).to.be.instanceOf(BrowserDiedError);
    const refused = await refusalOf(run(2));
    expect(refused.code).to.equal("browser_crashed");
    expect(refused.message).to.contain("renderer crash");
    expect(refused.details.browserMs).to.be.above(0);
    expect(pool.pids).to.deep.equal([browser]);
  });

  it("screenshot() replies with the picture's length, and reports the browser time to the account", async () => {
    await using pool = openPool();
    const { handlers } = renderWorker(renderParts(pool), LIMITS);
    const parameters = ScreenshotRequest.parse({ html: "x" });
    const task = taskContext({ signal: new AbortController().signal, attempt: 1 });
    const { reply, tell } = await handlers.screenshot(
      { account: "a".repeat(32), parameters },
      task,
    );
    expect(reply.bytes).to.be.above(100);
    expect(tell).to.have.nested.property("[0].message", "used");
    expect(tell).to.have.nested.property("[0].input.ms", reply.browserMs);
  });

  it("pdf() ends a page when the account's time is used up, and begins none then", async () => {
    await using pool = openPool();
    await using site = await WebSite.start();
    const limitMs = 3_000;
    const { handlers, failures } = renderWorker(renderParts(pool), {
      ...LIMITS,
      browserMsPerDay: limitMs,
    });
    // Acts like the account: refuses when the time that its pages have used reaches the limit.
    let usedMs = 0;
    const asked: number[] = [];
    const call = (async (_contract: unknown, _key: string, message: string, given: object) => {
      const { limitMs: told, untoldMs } = given as { limitMs: number; untoldMs: number };
      expect([message, told]).to.deep.equal(["admit", limitMs]);
      asked.push(untoldMs);
      if (usedMs + untoldMs >= limitMs) {
        throw new ActorError("browser_time_exceeded", "Cannot render: the time is used");
      }
      return { usedMs };
    }) as TaskContext["call"];
    const input = {
      account: "a".repeat(32),
      parameters: PdfRequest.parse({ url: site.page("/", () => {}) }),
    };
    const refused = await refusalOf(handlers.pdf(input, taskContext({ call })));
    expect(refused.code).to.equal("browser_time_exceeded");
    // The page was aborted after the limit, but long before its own timeout.
    expect(asked.at(-1)).to.be.within(limitMs, 20_000);
    usedMs = refused.details.browserMs ?? 0;
    expect(usedMs).to.be.within(limitMs, 20_000);
    const sent = failures.pdf?.(input, refused, { id: "task", key: "" });
    expect(sent).to.have.nested.property("[0].input.ms", usedMs);
    const again = await refusalOf(handlers.pdf(input, taskContext({ call })));
    expect(again.code).to.equal("browser_time_exceeded");
    expect(again.details.browserMs).to.equal(undefined);
  });

  it("pdf() says when its page only waits for the network, and when it computes", async () => {
    await using pool = openPool();
    await using site = await WebSite.start();
    const { handlers } = renderWorker(renderParts(pool), LIMITS);
    for (const [script, expected] of [
      [`<img src="${site.page("/never", () => {})}">`, true],
      ["<script>for (;;) {}</script>", false],
    ] as const) {
      const leaving = new AbortController();
      const said: boolean[] = [];
      const setWaiting = (isWaiting: boolean) => {
        said.push(isWaiting);
        // The page that waits for the network may first load for a while, and on a busy machine it may respond late
        // many times. The computing page never waits, so the test ends after eight reports.
        if (isWaiting || (!expected && said.length === 8)) leaving.abort();
      };
      const parameters = PdfRequest.parse({ html: script });
      const task = taskContext({ setWaiting, signal: leaving.signal });
      await refusalOf(handlers.pdf({ account: "a", parameters }, task));
      expect(said.at(-1), script).to.equal(expected);
    }
  });
});
