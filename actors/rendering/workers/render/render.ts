/** The browser worker: prints and captures pages, and reports the browser time each of them took to its account. */
import { Readable } from "node:stream";
import { account } from "../../../../schemas/account/account.ts";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import { render } from "../../../../schemas/rendering/render.ts";
import { PAGES_PER_COMPUTING_PAGE } from "../../../../schemas/turn-limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { defineWorker, type TaskContext } from "../../../runtime/workers/define-worker.ts";
import { BrowserDiedError, BrowserNotStartedError } from "../../lib/browser/browser-died-error.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { AccountTime } from "./account-time.ts";
import { printPdf } from "./print-pdf.ts";
import { takeScreenshot } from "./take-screenshot.ts";

export interface RenderLimits {
  /** Pages that compute at a time; pages that wait for the network come on top. One account may have as many in all. */
  interactive: number;
  batch: number;
  /** The browser time of each account for a day; 0 is no limit. */
  browserMsPerDay: number;
}

export function renderWorker(pool: BrowserPool, clock: Clock, limits: RenderLimits) {
  const { interactive, batch, browserMsPerDay } = limits;
  const time = new AccountTime({ clock, limitMs: browserMsPerDay });
  return defineWorker(render, {
    slots: { interactive: interactive * PAGES_PER_COMPUTING_PAGE, batch },
    turns: { interactive: { computing: interactive, perKey: interactive, reserved: interactive } },
    handlers: {
      pdf: (input, task) =>
        tried(task, input.account, async (signal, hold) => {
          const held = { ...input, hold, setWaiting: task.setWaiting };
          const printed = await printPdf(pool, held, { signal, clock });
          return {
            reply: printed.summary(),
            chunks: printed.chunks,
            send: () => browserUsed(input.account, task.id, printed.browserMs()),
          };
        }),
      screenshot: (input, task) =>
        tried(task, input.account, async (signal, hold) => {
          const held = { ...input, hold, setWaiting: task.setWaiting };
          const taken = await takeScreenshot(pool, held, { signal, clock });
          const { bytes, browserMs } = taken;
          return {
            reply: { browserMs, bytes: bytes.length },
            chunks: Readable.from([bytes]),
            send: browserUsed(input.account, task.id, browserMs),
          };
        }),
    },
    failures: { pdf: failed, screenshot: failed },
  });

  /** Within the account's browser time. At its last try a task that ended its browser is refused. */
  async function tried<T>(
    task: TaskContext,
    accountId: string,
    work: (signal: AbortSignal, hold: () => void) => Promise<T>,
  ): Promise<T> {
    try {
      return await time.within(accountId, task, work);
    } catch (error) {
      if (error instanceof BrowserDiedError && task.attempt === TASK_TRIES_MAX) throw gaveUp(error);
      throw error;
    }
  }
}

function failed(
  input: { account: string },
  { details }: ActorError,
  { id }: { id: string },
): Envelope[] {
  return browserUsed(input.account, id, details.browserMs ?? 0);
}

function browserUsed(accountId: string, taskId: string, ms: number): Envelope[] {
  return ms === 0 ? [] : [envelope(account, accountId, "browserUsed", { ms, taskId })];
}

/** A page that ends its browser is at fault; a browser that cannot start is ours. */
function gaveUp(error: BrowserDiedError): ActorError {
  return error instanceof BrowserNotStartedError
    ? new ActorError("unavailable", "Cannot render the page: no browser could be started", {
        retryAfterS: 30,
      })
    : new ActorError("browser_crashed", "Cannot render the page: its browser died at every try", {
        browserMs: error.browserMs,
      });
}
