/** One pdf task from its parameters to its bytes. */

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
  /** The PDF, to be read once and to its end, or left by `return`; until then a large one holds its browser. */
  chunks: AsyncIterable<Uint8Array>;
  /** Wall-clock milliseconds a browser was held so far; it grows only while a large PDF is read. */
  browserMs(): number;
  /** Returns the figures that are known now. While a PDF is being read, its bytes and pages are not known. */
  summary(): { browserMs: number; bytes: number | null; pages: number | null; status?: number };
  /** Returns the figures that follow the bytes when all were read. */
  trailer(): { browserMs: number; bytes: number; pages: number };
  /** Events of the page, if the request wants a report. */
  report: PageReport | undefined;
}

/**
 * Prints a page. Rejects with an `ActorError` when the page, its parameters or the time are at fault (with
 * `details.browserMs`), with a `BrowserDiedError` when another try may succeed. `signal` gives the task up.
 */
export async function printPdf(
  pool: BrowserPool,
  { parameters: given, deadlineAt, hold, setWaiting }: PdfTask,
  limits: { signal: AbortSignal; clock: Clock },
): Promise<PrintedPdf> {
  const parameters = onDevice(given, "print");
  await using resources = new AsyncDisposableStack();
  const held = resources.use(
    await HeldPage.open(pool, { action: "print", deadlineAt, hold, setWaiting }, limits),
  );

  const { stream, first, status, report } = await held.explained(async () => {
    using document = await held.load(parameters);
    const stream = await PdfStream.print(held.context, parameters, { ...held.limits, document });
    // Chromium tells the end only with the piece after the last: of most PDFs all is known after the second.
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
