import { expect } from "chai";
import { PdfRequest } from "../../schemas/http/pdf.ts";
import { ScreenshotRequest } from "../../schemas/http/screenshot.ts";
import { TASK_TRIES_MAX } from "../../schemas/limits.ts";
import { openPool } from "../../scripts/testing/printer.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { taskContext } from "../../scripts/testing/task-context.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";
import { BrowserDiedError } from "../browser/browser-died-error.ts";
import { systemClock } from "../runtime/clock.ts";
import { renderWorker } from "./render.ts";

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
    const { handlers, failures } = renderWorker(pool, systemClock, { interactive: 1, batch: 1 });
    const accountId = "a".repeat(32);
    const input = {
      account: accountId,
      parameters: PdfRequest.parse({ url }),
      deadlineAt: systemClock.now() + 50_000,
    };
    const { signal } = new AbortController();
    const run = (attempt: number) =>
      handlers.pdf(input, taskContext({ signal, attempt, deadlineAt: input.deadlineAt }));
    const again = await Promise.resolve(run(TASK_TRIES_MAX - 1)).catch((error: unknown) => error);
    expect(again).to.be.instanceOf(BrowserDiedError);
    const refused = await refusalOf(Promise.resolve(run(TASK_TRIES_MAX)));
    expect(refused.code).to.equal("browser_crashed");
    expect(refused.details.browserMs).to.be.within(100, 50_000);
    const sent = failures.pdf?.(input, refused, { id: "task", key: "" });
    expect(sent).to.have.nested.property("[0].input.ms", refused.details.browserMs);
  });

  it("screenshot() replies with the picture's length, and reports the browser time to the account", async () => {
    await using pool = openPool();
    const { handlers } = renderWorker(pool, systemClock, { interactive: 1, batch: 1 });
    const deadlineAt = systemClock.now() + 50_000;
    const parameters = ScreenshotRequest.parse({ html: "x" });
    const task = taskContext({ signal: new AbortController().signal, attempt: 1, deadlineAt });
    const { reply, send } = await handlers.screenshot(
      { account: "a".repeat(32), parameters, deadlineAt },
      task,
    );
    expect(reply.bytes).to.be.above(100);
    expect(send).to.have.nested.property("[0].message", "browserUsed");
    expect(send).to.have.nested.property("[0].input.ms", reply.browserMs);
  });
});
