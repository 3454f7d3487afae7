/** The browser worker: prints and captures pages, and reports the browser time each of them took to its account. */
import { Readable } from "node:stream";
import { account } from "../../../../schemas/account/account.ts";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import {
  PAGES_PER_COMPUTING_PAGE,
  RENDERER_TRIES_MAX,
} from "../../../../schemas/rendering/limits.ts";
import { render } from "../../../../schemas/rendering/render.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { defineWorker, type TaskContext } from "../../../runtime/workers/define-worker.ts";
import {
  BrowserDiedError,
  BrowserNotStartedError,
  RendererCrashedError,
} from "../../lib/browser/browser-died-error.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { AccountTime } from "./account-time.ts";
import { printPdf } from "./print-pdf.ts";
import type { RenderCache } from "./render-cache.ts";
import { takeScreenshot } from "./take-screenshot.ts";

interface RenderLimits {
  /** Pages that compute at a time; pages that wait for the network come on top. One account may have as many in all. */
  interactive: number;
  batch: number;
  /** The browser time of each account for a day; 0 is no limit. */
  browserMsPerDay: number;
}

interface RenderParts {
  pool: BrowserPool;
  clock: Clock;
  cache: RenderCache;
}

export function renderWorker({ pool, clock, cache }: RenderParts, limits: RenderLimits) {
  const { interactive, batch, browserMsPerDay } = limits;
  const time = new AccountTime({ clock, limitMs: browserMsPerDay });
  return defineWorker(render, {
    slots: { interactive: interactive * PAGES_PER_COMPUTING_PAGE, batch },
    turns: { interactive: { computing: interactive, perKey: interactive, reserved: interactive } },
    handlers: {
      async pdf(input, task) {
        const kept = await cache.find("pdf", input);
        if (kept) {
          const { bytes, pages = null, status } = kept;
          const reply = { browserMs: 0, bytes: bytes.length, pages, ...statusOf(status) };
          return { reply, chunks: Readable.from([bytes]) };
        }
        return tried(task, input.account, async (signal, hold) => {
          const held = { ...input, hold, setWaiting: task.setWaiting };
          const printed = await printPdf(pool, held, { signal, clock });
          const reply = printed.summary();
          const about = () => ({ pages: printed.trailer().pages, status: reply.status });
          return {
            reply,
            chunks: cache.keep("pdf", input, printed.chunks, about),
            send: () => browserUsed(input.account, task.id, printed.browserMs()),
          };
        });
      },
      async screenshot(input, task) {
        const kept = await cache.find("screenshot", input);
        if (kept) {
          const { bytes, status } = kept;
          const reply = { browserMs: 0, bytes: bytes.length, ...statusOf(status) };
          return { reply, chunks: Readable.from([bytes]) };
        }
        return tried(task, input.account, async (signal, hold) => {
          const held = { ...input, hold, setWaiting: task.setWaiting };
          const { bytes, browserMs, status } = await takeScreenshot(pool, held, { signal, clock });
          const chunks = Readable.from([bytes]);
          return {
            reply: { browserMs, bytes: bytes.length, ...statusOf(status) },
            chunks: cache.keep("screenshot", input, chunks, () => ({ status })),
            send: browserUsed(input.account, task.id, browserMs),
          };
        });
      },
    },
    failures: { pdf: failed, screenshot: failed },
  });

  /** Runs the work within the account's browser time. A task whose tries are used up is refused. */
  async function tried<T>(
    task: TaskContext,
    accountId: string,
    work: (signal: AbortSignal, hold: () => void) => Promise<T>,
  ): Promise<T> {
    try {
      return await time.within(accountId, task, work);
    } catch (error) {
      if (error instanceof BrowserDiedError && task.attempt >= triesOf(error)) throw gaveUp(error);
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

const statusOf = (status: number | undefined) => (status === undefined ? {} : { status });

/** A renderer that crashed is no other page's doing, so a second crash is the page's own. */
const triesOf = ({ cause }: BrowserDiedError) =>
  cause instanceof RendererCrashedError ? RENDERER_TRIES_MAX : TASK_TRIES_MAX;

/** A page that ends its browser is at fault; a browser that cannot start is ours. */
function gaveUp(error: BrowserDiedError): ActorError {
  if (error.cause instanceof RendererCrashedError) {
    return new ActorError("browser_crashed", error.message, { browserMs: error.browserMs });
  }
  return error instanceof BrowserNotStartedError
    ? new ActorError("unavailable", "Cannot render the page: no browser could be started", {
        retryAfterS: 30,
      })
    : new ActorError("browser_crashed", "Cannot render the page: its browser died at every try", {
        browserMs: error.browserMs,
      });
}
