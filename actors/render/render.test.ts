import { expect } from "chai";
import { PdfRequest } from "../../schemas/http/pdf.ts";
import { TASK_TRIES_MAX } from "../../schemas/limits.ts";
import { openPool } from "../../scripts/testing/printer.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { taskContext } from "../../scripts/testing/task-context.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";
import { BrowserDiedError } from "../browser/browser-died-error.ts";
import { systemClock } from "../runtime/clock.ts";
import { renderWorker } from "./render.ts";

describe("renderWorker", function () {
  this.timeout(20_000);

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
      deadlineAt: systemClock.now() + 15_000,
    };
    const { signal } = new AbortController();
    const run = (attempt: number) =>
      handlers.pdf(input, taskContext({ signal, attempt, deadlineAt: input.deadlineAt }));
    const again = await Promise.resolve(run(TASK_TRIES_MAX - 1)).catch((error: unknown) => error);
    expect(again).to.be.instanceOf(BrowserDiedError);
    const refused = await refusalOf(Promise.resolve(run(TASK_TRIES_MAX)));
    expect(refused.code).to.equal("browser_crashed");
    expect(refused.details.browserMs).to.be.within(100, 15_000);
    const sent = failures.pdf?.(input, refused, { id: "task", key: "" });
    expect(sent).to.have.nested.property("[0].input.ms", refused.details.browserMs);
  });
});
