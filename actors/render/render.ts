/** The browser worker: prints pages, and reports the browser time each of them took to its account. */
import { account } from "../../schemas/account.ts";
import { type Envelope, envelope } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { TASK_TRIES_MAX } from "../../schemas/limits.ts";
import { render } from "../../schemas/render.ts";
import { BrowserDiedError, BrowserNotStartedError } from "../browser/browser-died-error.ts";
import type { BrowserPool } from "../browser/browser-pool.ts";
import type { Clock } from "../runtime/clock.ts";
import { defineWorker } from "../runtime/define-worker.ts";
import { printPdf } from "./print-pdf.ts";

export interface RenderSlots {
  interactive: number;
  batch: number;
}

export function renderWorker(pool: BrowserPool, clock: Clock, { interactive, batch }: RenderSlots) {
  return defineWorker(render, {
    slots: { interactive, batch },
    handlers: {
      async pdf(input, { id, signal, attempt }) {
        try {
          const printed = await printPdf(pool, input, { signal, clock });
          return {
            reply: printed.summary(),
            chunks: printed.chunks,
            send: () => browserUsed(input.account, id, printed.browserMs()),
          };
        } catch (error) {
          if (error instanceof BrowserDiedError && attempt === TASK_TRIES_MAX) throw gaveUp(error);
          throw error;
        }
      },
    },
    failures: {
      pdf: (input, { details }, { id }) => browserUsed(input.account, id, details.browserMs ?? 0),
    },
  });
}

function browserUsed(accountId: string, taskId: string, ms: number): Envelope[] {
  return ms === 0 ? [] : [envelope(account, accountId, "browserUsed", { ms, taskId })];
}

/** A page that ends its browser is at fault; a browser that cannot start is ours. */
function gaveUp(error: BrowserDiedError): ActorError {
  return error instanceof BrowserNotStartedError
    ? new ActorError("unavailable", "Cannot print the page: no browser could be started", {
        retryAfterS: 30,
      })
    : new ActorError("browser_crashed", "Cannot print the page: its browser died at every try", {
        browserMs: error.browserMs,
      });
}
