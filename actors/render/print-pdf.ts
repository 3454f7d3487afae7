/** One pdf task from its parameters to its bytes. */
import { ProtocolError } from "puppeteer-core";
import { ActorError } from "../../schemas/errors.ts";
import type { PdfRequest } from "../../schemas/http/pdf.ts";
import { BrowserDiedError } from "../browser/browser-died-error.ts";
import type { BrowserPool } from "../browser/browser-pool.ts";
import { loadPage } from "../browser/load-page.ts";
import { preparePage } from "../browser/prepare-page.ts";
import type { RenderContext } from "../browser/render-context.ts";
import { Timeout } from "../browser/time-limit.ts";
import type { Clock } from "../runtime/clock.ts";
import { PdfStream } from "./pdf-stream.ts";

export interface PdfTask {
  parameters: PdfRequest;
  /** Epoch milliseconds. */
  deadlineAt: number;
}

export interface PrintedPdf {
  /** The PDF, to be read once and to its end, or left by `return`; until then a large one holds its browser. */
  chunks: AsyncIterable<Uint8Array>;
  /** Wall-clock milliseconds a browser was held so far; it grows only while a large PDF is read. */
  browserMs(): number;
  /** What is known now: of a PDF that is still being read, neither its bytes nor its pages. */
  summary(): { browserMs: number; bytes: number | null; pages: number | null };
  /** What goes after the bytes, once they have been read. */
  trailer(): { browserMs: number; bytes: number; pages: number };
}

/**
 * Prints a page. Rejects with an `ActorError` when the page, its parameters or the time are at fault (with
 * `details.browserMs`), with a `BrowserDiedError` when another try may succeed. `signal` gives the task up.
 */
export async function printPdf(
  pool: BrowserPool,
  { parameters, deadlineAt }: PdfTask,
  { signal, clock }: { signal: AbortSignal; clock: Clock },
): Promise<PrintedPdf> {
  await using resources = new AsyncDisposableStack();
  const deadline = resources.use(
    new Timeout({ ms: deadlineAt - clock.now(), error: deadlineExceeded, clock }),
  );
  const given = AbortSignal.any([cancelledBy(signal), deadline.signal]);
  const context = resources.use(await pool.newContext(given));
  const held = new Stopwatch(clock);
  const ended = AbortSignal.any([given, context.lost]);
  // Nothing of a task that was given up goes on, whatever it is doing at the moment.
  ended.addEventListener("abort", () => context.release(), { once: true });

  const { stream, first } = await explained(async () => {
    const limits = { signal: ended, clock };
    await preparePage(context, parameters);
    const document = await loadPage(context, parameters, limits);
    document.check();
    const stream = await PdfStream.print(context, parameters, limits);
    // Chromium tells the end only with the piece after the last: of most PDFs all is known after the second.
    const first = [await stream.read()];
    if (!stream.ended) first.push(await stream.read());
    return { stream, first };
  });
  if (stream.ended) {
    held.stop();
    // The browser closes it in its own time; the PDF need not wait for that.
    void context.release();
  }
  const rest = resources.move();
  return { chunks: chunks(), browserMs: () => held.ms, summary, trailer };

  async function* chunks() {
    await using _ = rest;
    try {
      yield* first;
      while (!stream.ended) yield await explained(() => stream.read());
    } finally {
      held.stop();
    }
  }

  function summary() {
    const { ended, bytes, pages } = stream;
    return { browserMs: held.ms, bytes: ended ? bytes : null, pages: ended ? pages : null };
  }

  function trailer() {
    if (!stream.ended) throw new Error("Cannot tell the trailer: the PDF has not been read");
    return { browserMs: held.ms, bytes: stream.bytes, pages: stream.pages };
  }

  /** The work, its failures told as what they mean to the caller. */
  async function explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      held.stop();
      // When all has ended, that is why, whatever failed in consequence.
      const cause = ended.aborted ? ended.reason : refusalOf(error, context);
      if (cause instanceof BrowserDiedError) {
        throw new BrowserDiedError(cause.message, { cause, browserMs: held.ms });
      }
      if (!(cause instanceof ActorError)) throw cause;
      throw new ActorError(cause.code, cause.message, { ...cause.details, browserMs: held.ms });
    }
  }
}

/** Measures until it is stopped. */
class Stopwatch {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #stoppedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** Whole milliseconds, at least one: a browser was held. */
  get ms(): number {
    return Math.max(1, Math.round((this.#stoppedAt ?? this.#clock.monotonic()) - this.#startedAt));
  }

  stop(): void {
    this.#stoppedAt ??= this.#clock.monotonic();
  }
}

function deadlineExceeded(): ActorError {
  return new ActorError("deadline_exceeded", "Cannot print the page: the deadline has passed");
}

/** The caller's signal, its reason in our words. */
function cancelledBy(signal: AbortSignal): AbortSignal {
  const cancelled = new AbortController();
  const cancel = () => {
    const { reason } = signal;
    const left = new ActorError("cancelled", "Cannot print the page: the caller has left");
    cancelled.abort(reason instanceof ActorError ? reason : left);
  };
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  return cancelled.signal;
}

/** What puppeteer throws when a page goes under its hands has no class of its own, only these words. */
const NAVIGATED_AWAY =
  /Execution context (?:was destroyed|is not available)|detached|Cannot find context/i;

function refusalOf(error: unknown, { page }: RenderContext): unknown {
  if (error instanceof ActorError || !(error instanceof Error)) return error;
  if (NAVIGATED_AWAY.test(error.message)) {
    return new ActorError(
      "page_navigated_away",
      "Cannot print the page: it left while it was used",
    );
  }
  if (page.isClosed() || (error instanceof ProtocolError && error.name === "TargetCloseError")) {
    return new ActorError("browser_crashed", "Cannot print the page: it closed itself");
  }
  return error;
}
