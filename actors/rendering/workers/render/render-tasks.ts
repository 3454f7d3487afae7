/**
 * Runs the tasks of one browser worker: responds from the cache, or loads a page within the browser time of the
 * account.
 */
import { Readable } from "node:stream";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import { browserTime } from "../../../../schemas/rendering/browser-time.ts";
import type { PageReport } from "../../../../schemas/rendering/http/page-report.ts";
import type { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import type { ScreenshotRequest } from "../../../../schemas/rendering/http/screenshot.ts";
import { RENDERER_TRIES_MAX, REPORTED_BYTES_MAX } from "../../../../schemas/rendering/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import {
  BrowserDiedError,
  BrowserNotStartedError,
  RendererCrashedError,
} from "../../lib/browser/browser-died-error.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { AccountTime, type Hold } from "./account-time.ts";
import type { Action } from "./held-page.ts";
import type { Output, PageParameters, ReadAnswer } from "./outputs/output.ts";
import { membersOf } from "./outputs/read-text.ts";
import { type PrintedPdf, printPdf } from "./print-pdf.ts";
import { printSources } from "./print-sources.ts";
import type { CachePlace, RenderCache } from "./render-cache.ts";
import { renderPage } from "./render-page.ts";
import { pictureOutput } from "./take-screenshot.ts";

/** The fields that every task has. */
interface TaskOf<P> {
  account: string;
  parameters: P;
  /** For a job: when its page must be done, by the clock that does not jump. */
  endsAt?: number | undefined;
  cacheTtlS?: number | undefined;
}

interface RenderTasksParts {
  pool: BrowserPool;
  clock: Clock;
  cache: RenderCache;
  /** Limit of each account's browser time per day in milliseconds; 0 means no limit. */
  browserMsPerDay: number;
}

export class RenderTasks {
  readonly #parts: RenderTasksParts;
  readonly #time: AccountTime;

  constructor(parts: RenderTasksParts) {
    this.#parts = parts;
    this.#time = new AccountTime({ clock: parts.clock, limitMs: parts.browserMsPerDay });
  }

  async pdf(input: TaskOf<PdfRequest>, task: TaskContext) {
    const { pool, clock, cache } = this.#parts;
    const place = cache.place("pdf", input);
    const kept = await place.find();
    if (kept) {
      const { bytes, pages = null, status } = kept;
      const reply = { browserMs: 0, bytes: bytes.length, pages, ...statusOf(status) };
      return { reply, chunks: Readable.from([bytes]) };
    }
    return await this.#tried(task, input.account, async (signal, hold) => {
      const held = { ...input, hold, setWaiting: task.setWaiting };
      const { sources } = input.parameters;
      const printed = sources
        ? await printSources(pool, { ...held, sources }, { signal, clock })
        : await printPdf(pool, held, { signal, clock });
      const { report } = printed;
      if (report) return await this.#reported({ ...printed, report }, { task, input, place });
      const reply = printed.summary();
      // A small PDF needs its browser no longer.
      if (reply.bytes !== null) task.setAnswering();
      const about = () => ({ pages: printed.trailer().pages, status: reply.status });
      return {
        reply,
        chunks: place.keep(printed.chunks, about),
        tell: () => browserUsed(input.account, task.id, printed.browserMs()),
      };
    });
  }

  /** Returns the whole PDF as base64 text in JSON, together with the report about its page. */
  async #reported(
    { chunks, trailer, report }: PrintedPdf & { report: PageReport },
    { task, input, place }: { task: TaskContext; input: TaskOf<PdfRequest>; place: CachePlace },
  ) {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of chunks) {
      pieces.push(chunk);
      size += chunk.length;
      if (size > REPORTED_BYTES_MAX) throw tooLargeToReport();
    }
    const { browserMs, pages } = trailer();
    const result = Buffer.concat(pieces).toString("base64");
    const bytes = Buffer.from(membersOf({ result, report }));
    const about = () => ({ pages, ...statusOf(report.status ?? undefined) });
    return {
      reply: { browserMs, bytes: bytes.length, ...about() },
      chunks: place.keep(Readable.from([bytes]), about),
      tell: () => browserUsed(input.account, task.id, browserMs),
    };
  }

  async screenshot(input: TaskOf<ScreenshotRequest>, task: TaskContext) {
    const answering = { message: "screenshot", action: "capture", input, task } as const;
    return await this.#answer(answering, picture, (bytes, report) => {
      if (report === undefined) return bytes;
      const { encoding } = input.parameters.screenshotOptions;
      const result = bytes.toString(encoding === "base64" ? "latin1" : "base64");
      return Buffer.from(membersOf({ result, report }));
    });
  }

  /** Makes the handler of a call that answers JSON. */
  read<P extends PageParameters>(message: string, output: Output<P, ReadAnswer<unknown>>) {
    return (input: TaskOf<P>, task: TaskContext) =>
      this.#answer({ message, action: "read", input, task }, output, (answer, report) =>
        Buffer.from(membersOf({ ...answer, ...(report && { report }) })),
      );
  }

  async #answer<P extends PageParameters, A>(
    { message, action, input, task }: Answering<P>,
    output: Output<P, A>,
    write: (answer: A, report: PageReport | undefined) => Buffer,
  ) {
    const { pool, clock, cache } = this.#parts;
    const place = cache.place(message, input);
    const kept = await place.find();
    if (kept) {
      const { bytes, status } = kept;
      const reply = { browserMs: 0, bytes: bytes.length, ...statusOf(status) };
      return { reply, chunks: Readable.from([bytes]) };
    }
    return await this.#tried(task, input.account, async (signal, hold) => {
      const held = { ...input, action, hold, setWaiting: task.setWaiting };
      const rendered = await renderPage(pool, held, { output, signal, clock });
      const { answer, browserMs, status, report } = rendered;
      const bytes = write(answer, report);
      task.setAnswering();
      return {
        reply: { browserMs, bytes: bytes.length, ...statusOf(status) },
        chunks: place.keep(Readable.from([bytes]), () => ({ status })),
        tell: browserUsed(input.account, task.id, browserMs),
      };
    });
  }

  /**
   * Runs the work within the account's browser time. If the browser died at the last allowed attempt, throws a
   * refusal.
   */
  async #tried<T>(
    task: TaskContext,
    accountId: string,
    work: (signal: AbortSignal, hold: Hold) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#time.within(accountId, task, work);
    } catch (error) {
      if (error instanceof BrowserDiedError && task.attempt >= triesOf(error)) throw gaveUp(error);
      throw error;
    }
  }
}

interface Answering<P> {
  message: string;
  action: Action;
  input: TaskOf<P>;
  task: TaskContext;
}

const picture = pictureOutput();

/** Returns the message that reports the browser time of a failed task. */
export function failed(
  input: { account: string },
  { details }: ActorError,
  { id }: { id: string },
): Envelope[] {
  return browserUsed(input.account, id, details.browserMs ?? 0);
}

function tooLargeToReport(): ActorError {
  const most = `${REPORTED_BYTES_MAX} bytes are the most with a report`;
  return new ActorError(
    "page_not_printable",
    `Cannot print the page: its PDF is larger, and ${most}`,
  );
}

function browserUsed(accountId: string, taskId: string, ms: number): Envelope[] {
  return ms === 0 ? [] : [envelope(browserTime, accountId, "used", { ms, taskId })];
}

const statusOf = (status: number | undefined) => (status === undefined ? {} : { status });

/**
 * Maximum attempts of a task. A renderer has only one page, so a second crash of the renderer is caused by that page.
 */
const triesOf = ({ cause }: BrowserDiedError) =>
  cause instanceof RendererCrashedError ? RENDERER_TRIES_MAX : TASK_TRIES_MAX;

/**
 * Returns the refusal after the last attempt. If the page crashed its renderer or browser, the page is the cause. If
 * no browser started, the platform is.
 */
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
