/** Runs one task, from its parameters to its response: loads a page, lets an output read from it, and releases it. */
import { ActorError } from "../../../../schemas/errors.ts";
import type { PageReport } from "../../../../schemas/rendering/http/page-report.ts";
import { LOAD_REST_MS } from "../../../../schemas/rendering/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { HeldPage, type PageTask } from "./held-page.ts";
import { actionMs, type Output, type PageParameters } from "./outputs/output.ts";
import { onDevice } from "./page-device.ts";
import { contentReady } from "./page-ready.ts";
import { scrollThrough } from "./scroll-through.ts";

export interface RenderTask<P> extends PageTask {
  account: string;
  parameters: P;
}

export interface Rendered<A> {
  answer: A;
  /** Wall-clock milliseconds for which a browser was in use. */
  browserMs: number;
  /** The HTTP status with which the page's site responded. Undefined for a submitted document. */
  status: number | undefined;
  /** Report about the page, if the request wants one. */
  report: PageReport | undefined;
}

/** Loads a page and creates the output. Rejects with the same errors as `printPdf`. */
export async function renderPage<P extends PageParameters, A>(
  pool: BrowserPool,
  { parameters: given, ...task }: RenderTask<P>,
  { output, ...limited }: { output: Output<P, A>; signal: AbortSignal; clock: Clock },
): Promise<Rendered<A>> {
  const parameters = onDevice(given, task.action);
  await using held = await HeldPage.open(pool, task, limited);
  const { context, limits } = held;
  const ms = actionMs(parameters);
  const error = () =>
    new ActorError(
      "wait_timed_out",
      `Cannot ${task.action} the page: it took longer than ${ms} ms`,
    );
  const { make, status, report } = await held.explained(async () => {
    using document = await held.load(parameters);
    const make = await within({ ...limits, ms, error }, async (signal) => {
      const patience = { ms: Math.min(LOAD_REST_MS, ms / 2), signal, clock: limits.clock };
      if (parameters.scrollPage) {
        await contentReady(context, patience);
        await scrollThrough(context, parameters, patience);
      }
      return await output({ context, document, limits: patience }, parameters);
    });
    document.check();
    return { make, status: document.status, report: held.report(document) };
  });
  held.leave();
  // The remaining work needs no browser, so the end of the browser does not abort it. It waits for AI models or another
  // thread.
  task.setWaiting?.(true);
  const answer = await held.explained(() => make({ account: task.account, signal: held.given }));
  return { answer, browserMs: held.browserMs, status, report };
}
