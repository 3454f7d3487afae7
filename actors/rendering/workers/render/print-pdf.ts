/** Runs one pdf task, from its parameters to the bytes of the PDF. */

import type { PageReport } from "../../../../schemas/rendering/http/page-report.ts";
import type { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { HeldPage, type PageTask } from "./held-page.ts";
import { onDevice } from "./page-device.ts";
import { PdfStream } from "./pdf-stream.ts";

export interface PdfTask extends Omit<PageTask, "action"> {
  parameters: PdfRequest;
}

export interface PrintedPdf {
  /** The PDF. Read it once, to its end, or stop with `return`. Until then a large PDF occupies its browser. */
  chunks: AsyncIterable<Uint8Array>;
  /**
   * Wall-clock milliseconds for which a browser has been in use so far. The value still grows while a large PDF is
   * read.
   */
  browserMs(): number;
  /** Returns the figures that are known now. While a large PDF is still being read, its bytes and pages are null. */
  summary(): { browserMs: number; bytes: number | null; pages: number | null; status?: number };
  /** Returns the figures that are sent after the bytes, when all bytes were read. */
  trailer(): { browserMs: number; bytes: number; pages: number };
  /** Report about the page, if the request wants one. */
  report: PageReport | undefined;
}

/**
 * Prints a page. Rejects with an `ActorError` (with `details.browserMs`) if the page, its parameters or a timeout is
 * the cause. Rejects with a `BrowserDiedError` if a retry may succeed. `signal` cancels the task.
 */
export async function printPdf(
  pool: BrowserPool,
  { parameters: given, account, endsAt, hold, setWaiting }: PdfTask,
  limits: { signal: AbortSignal; clock: Clock },
): Promise<PrintedPdf> {
  const parameters = onDevice(given, "print");
  await using resources = new AsyncDisposableStack();
  const held = resources.use(
    await HeldPage.open(pool, { action: "print", account, endsAt, hold, setWaiting }, limits),
  );

  const { stream, first, status, report } = await held.explained(async () => {
    using document = await held.load(parameters);
    const stream = await PdfStream.print(held.context, parameters, { ...held.limits, document });
    // Chromium reports the end only with the piece after the last one. So most PDFs are complete after the second
    // read.
    const first = [await stream.read()];
    if (!stream.ended) first.push(await stream.read());
    return { stream, first, status: document.status, report: held.report(document) };
  });
  if (stream.ended) held.leave();
  const rest = resources.move();
  return { chunks: chunks(), browserMs: () => held.browserMs, summary, trailer, report };

  async function* chunks() {
    await using _ = rest;
    yield* first;
    while (!stream.ended) yield await held.explained(() => stream.read());
  }

  function summary() {
    const { ended, bytes, pages } = stream;
    const known = ended ? { bytes, pages } : { bytes: null, pages: null };
    return { browserMs: held.browserMs, ...known, ...(status !== undefined && { status }) };
  }

  function trailer() {
    if (!stream.ended) throw new Error("Cannot tell the trailer: the PDF has not been read");
    return { browserMs: held.browserMs, bytes: stream.bytes, pages: stream.pages };
  }
}
