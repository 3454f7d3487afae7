/** Prints several documents one after the other and joins them to one PDF. */
import { ActorError } from "../../../../schemas/errors.ts";
import type { Source } from "../../../../schemas/rendering/http/page-files.ts";
import { JOINED_PDF_BYTES_MAX, METADATA_CHARS_MAX } from "../../../../schemas/rendering/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { BrowserDiedError } from "../../lib/browser/browser-died-error.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { PdfJoiner } from "../../lib/pdf/pdf-joiner.ts";
import { deadlineAt, HeldPage, NO_ACCOUNT } from "./held-page.ts";
import { onDevice } from "./page-device.ts";
import { PdfStream } from "./pdf-stream.ts";
import { type PrintedSource, printOverlays } from "./print-overlays.ts";
import type { PdfTask, PrintedPdf } from "./print-pdf.ts";

/** An expression for the page: its title, cut to the maximum length of a property. */
const TITLE = `document.title.slice(0, ${METADATA_CHARS_MAX}).toWellFormed()`;

interface Printing {
  pool: BrowserPool;
  task: PdfTask;
  limits: { signal: AbortSignal; clock: Clock };
  /** Maximum bytes of the PDFs of all sources and of their headers and footers together. */
  bytesMax: number;
  /** Browser time and bytes so far. */
  spent: { browserMs: number; bytes: number };
}

/** Data about a source's printed page, and its PDF until it is joined. */
interface PrintedPart {
  about: Omit<PrintedSource, "sizes">;
  pdf: Uint8Array;
  address: string | undefined;
}

/** Prints and joins the sources. Rejects as `printPdf` does. `status` is the highest status that a site returned. */
export async function printSources(
  pool: BrowserPool,
  { sources, ...task }: PdfTask & { sources: readonly Source[] },
  {
    bytesMax = JOINED_PDF_BYTES_MAX,
    ...limits
  }: { signal: AbortSignal; clock: Clock; bytesMax?: number },
): Promise<PrintedPdf> {
  const spent = { browserMs: 0, bytes: 0 };
  const printing = { pool, task, limits, bytesMax, spent };
  const parts: PrintedPart[] = [];
  for (const [index, source] of sources.entries()) {
    parts.push(await named(`sources/${index}`, printing, () => print(printing, source)));
  }
  const { bytes, printed } = await named("joining", printing, () => join(printing, parts));
  const statuses = printed.flatMap(({ status = [] }) => status);
  const status = statuses.length > 0 ? { status: Math.max(...statuses) } : {};
  const pages = printed.reduce((sum, { sizes }) => sum + sizes.length, 0);
  const known = { browserMs: spent.browserMs, bytes: bytes.length, pages };
  return {
    chunks: once(bytes),
    browserMs: () => spent.browserMs,
    summary: () => ({ ...known, ...status }),
    trailer: () => known,
    report: undefined,
  };
}

/** Joins the parts after all of them are printed. So a slow site does not occupy one of the few slots for joins. */
async function join(printing: Printing, parts: PrintedPart[]) {
  const { task, limits } = printing;
  const { pdfOptions } = task.parameters;
  const error = () =>
    new ActorError("deadline_exceeded", "Cannot join the PDFs: the deadline has passed");
  using deadline = deadlineAt(task.endsAt, { error, clock: limits.clock });
  task.setWaiting?.(true);
  const signal = AbortSignal.any([limits.signal, deadline.signal]);
  await using joiner = await PdfJoiner.open(task.account ?? NO_ACCOUNT, signal);
  task.setWaiting?.(false);
  const printed: PrintedSource[] = [];
  // The parts are removed from this array, because the thread has its own copies.
  for (const { about, pdf, address } of parts.splice(0)) {
    printed.push({ ...about, sizes: await joiner.add({ pdf, address }) });
  }
  const overlays = pdfOptions?.displayHeaderFooter ? await overlay(printing, printed) : [];
  // The page of the overlays may have reported that it waits for the network.
  task.setWaiting?.(false);
  const properties = { title: printed[0]?.title ?? "", ...printed[0]?.properties };
  const bytes = await joiner.finish({ ...properties, ...pdfOptions?.metadata }, overlays);
  return { bytes, printed };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function print(printing: Printing, { file, ...source }: Source): Promise<PrintedPart> {
  const { pool, task, limits, spent } = printing;
  const { sources: _, files, ...shared } = task.parameters;
  const document = file === undefined ? source : { files, document: file };
  const parameters = onDevice({ ...shared, ...document }, "print");
  const { account, endsAt, hold, setWaiting } = task;
  await using held = await HeldPage.open(
    pool,
    { action: "print", account, endsAt, hold, setWaiting },
    limits,
  );
  const pdfOptions = shared.pdfOptions && { ...shared.pdfOptions, displayHeaderFooter: false };
  const { pdf, ...about } = await held.explained(async () => {
    using document = await held.load(parameters);
    const options = { ...parameters, pdfOptions };
    const stream = await PdfStream.print(held.context, options, { ...held.limits, document });
    const pdf = await readAll(stream, printing);
    const title = String(await held.context.evaluate(TITLE));
    const { properties } = stream;
    return { pdf, title, properties, url: held.context.page.url(), status: document.status };
  });
  held.leave();
  spent.browserMs += held.browserMs;
  const address = source.html === undefined ? about.url : undefined;
  return { about, pdf, address };
}

async function overlay(printing: Printing, printed: readonly PrintedSource[]) {
  const { pool, task, limits, spent } = printing;
  const { account, endsAt, hold, setWaiting, parameters } = task;
  const held = await HeldPage.open(
    pool,
    { action: "print", account, endsAt, hold, setWaiting },
    limits,
  );
  await using _ = held;
  const overlays = await held.explained(() =>
    printOverlays(held, {
      pdfOptions: parameters.pdfOptions,
      printed,
      read: (stream) => readAll(stream, printing),
    }),
  );
  held.leave();
  spent.browserMs += held.browserMs;
  return overlays;
}

async function readAll(
  stream: PdfStream,
  { spent, bytesMax }: Pick<Printing, "spent" | "bytesMax">,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  while (!stream.ended) {
    const piece = await stream.read();
    pieces.push(piece);
    spent.bytes += piece.length;
    if (spent.bytes > bytesMax) {
      const most = `${bytesMax} bytes are the most in all`;
      throw new ActorError("page_not_printable", `Cannot join the PDFs: ${most}`);
    }
  }
  return Buffer.concat(pieces);
}

/** Runs a part of the work. An error names the part and carries the browser time of all parts so far. */
async function named<T>(part: string, { spent }: Printing, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof BrowserDiedError) {
      const browserMs = spent.browserMs + error.browserMs;
      throw new BrowserDiedError(error.message, { cause: error.cause, browserMs });
    }
    if (!(error instanceof ActorError)) throw error;
    const browserMs = spent.browserMs + (error.details.browserMs ?? 0);
    throw new ActorError(error.code, `${error.message} (${part})`, { ...error.details, browserMs });
  }
}
