/** Prints the page and streams the PDF in pieces. The information dictionary of the PDF is rewritten on the way. */

import type { Protocol } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import { PDF_BYTES_MAX, PRINT_TIMEOUT_MS } from "../../../../schemas/limits.ts";
import { paperOf } from "../../../../schemas/rendering/http/paper.ts";
import type { PdfOptions } from "../../../../schemas/rendering/http/pdf.ts";
import type { PdfMetadata } from "../../../../schemas/rendering/http/pdf-metadata.ts";
import { LOAD_REST_MS } from "../../../../schemas/rendering/limits.ts";
import { abortable, Timeout, within } from "../../../runtime/lib/time-limit.ts";
import { drawingSettled } from "../../lib/browser/drawing-settled.ts";
import { ProtocolError } from "../../lib/browser/driver-parts.ts";
import type { Limits } from "../../lib/browser/load-page.ts";
import type { MainDocument } from "../../lib/browser/main-document.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";
import { refusedByBrowser } from "./held-page.ts";
import { fontsReady, loadedSoon, lookOnce } from "./page-ready.ts";
import { hasInformation, neutralize, PageCounter, titleOf } from "./pdf-metadata.ts";
import { META_TAGS, PDF_END_BYTES, propertiesOf, propertiesUpdate } from "./pdf-properties.ts";
import { scrollThrough } from "./scroll-through.ts";

/** Maximum wait for loading images before Chromium is asked to print. Most pages need less. */
export const LOAD_SOON_MS = 1_000;

/** Size of the pieces in which the browser sends a PDF. */
const PDF_CHUNK_BYTES = 1024 * 1024;

export interface PrintOptions {
  pdfOptions?: PdfOptions | undefined;
  actionTimeout?: number | undefined;
  scrollPage?: boolean | undefined;
  setJavaScriptEnabled?: boolean | undefined;
}

export class PdfStream {
  bytes = 0;
  /** Whether the whole PDF has been read. */
  ended = false;
  /** Properties from the request and from the page. */
  readonly properties: PdfMetadata;
  readonly #context: RenderContext;
  readonly #handle: string;
  readonly #signal: AbortSignal;
  readonly #counter = new PageCounter();
  /**
   * Pieces that were requested and not yet read. Chromium reports the end only with the piece after the last one, so
   * the first two are requested together.
   */
  #asked: Promise<Protocol.IO.ReadResponse>[] = [];
  /** The encoded title and the last bytes of the PDF. An update of the properties needs both. */
  #title = "";
  #end = Buffer.alloc(0);

  static async print(
    context: RenderContext,
    options: PrintOptions,
    { signal, clock, document }: Limits & { document: Pick<MainDocument, "check"> },
  ): Promise<PdfStream> {
    const { pdfOptions, actionTimeout = Number.POSITIVE_INFINITY } = options;
    const ms = Math.min(pdfOptions?.timeout ?? PRINT_TIMEOUT_MS, actionTimeout);
    const error = () =>
      new ActorError("wait_timed_out", `Cannot print the page: it took longer than ${ms} ms`);
    return await within({ ms, error, signal, clock }, async (limited) => {
      const { session } = context;
      const properties = await readyToPrint(context, options, { ms, signal: limited, clock });
      document.check();
      if (pdfOptions?.omitBackground) {
        const color = { r: 0, g: 0, b: 0, a: 0 };
        await session.send("Emulation.setDefaultBackgroundColorOverride", { color });
      }
      using rest = new Timeout({ ms: Math.min(LOAD_REST_MS, ms / 2), error, clock });
      // Errors are ignored: a closed page loads nothing that must be stopped.
      const stop = () => void session.send("Page.stopLoading").catch(() => {});
      rest.signal.addEventListener("abort", stop, { once: true });
      const printed = await session
        .send("Page.printToPDF", printParameters(pdfOptions))
        .catch((cause) => Promise.reject(printError(cause)));
      if (printed.stream === undefined) throw new Error("Cannot print: Chromium gave no stream");
      return new PdfStream(context, { handle: printed.stream, properties, signal });
    });
  }

  /** Use `print`. */
  constructor(
    context: RenderContext,
    parts: { handle: string; properties: PdfMetadata; signal: AbortSignal },
  ) {
    this.#context = context;
    this.properties = parts.properties;
    this.#handle = parts.handle;
    this.#signal = parts.signal;
    this.#asked = [this.#ask(), this.#ask()];
    // If the first one fails, nobody reads the second one.
    for (const asked of this.#asked) asked.catch(() => {});
  }

  /** Number of pages in the bytes that were read so far. */
  get pages(): number {
    return this.#counter.pages;
  }

  /** Returns the next piece. The first piece contains the whole information dictionary. */
  async read(): Promise<Uint8Array> {
    let piece: Uint8Array = await this.#read();
    if (this.bytes === 0) {
      while (!this.ended && !hasInformation(piece))
        piece = Buffer.concat([piece, await this.#read()]);
      this.#title = titleOf(piece);
      piece = neutralize(piece);
    }
    this.#counter.read(piece);
    this.bytes += piece.length;
    this.#end = Buffer.concat([this.#end, piece.subarray(-PDF_END_BYTES)]).subarray(-PDF_END_BYTES);
    if (this.ended) {
      const about = { end: this.#end.toString("latin1"), length: this.bytes, title: this.#title };
      const update = propertiesUpdate(this.properties, about);
      if (update.length > 0) piece = Buffer.concat([piece, update]);
      this.bytes += update.length;
    }
    if (this.bytes > PDF_BYTES_MAX) {
      throw new ActorError(
        "page_not_printable",
        `Cannot print the page: its PDF is larger than ${PDF_BYTES_MAX} bytes`,
      );
    }
    return piece;
  }

  async #read(): Promise<Buffer> {
    const [reading = this.#ask(), ...ahead] = this.#asked;
    this.#asked = ahead;
    const { data, base64Encoded = false, eof } = await abortable(reading, this.#signal);
    this.ended = eof;
    return Buffer.from(data, base64Encoded ? "base64" : "utf8");
  }

  async #ask(): Promise<Protocol.IO.ReadResponse> {
    return await this.#context.session.send("IO.read", {
      handle: this.#handle,
      size: PDF_CHUNK_BYTES,
    });
  }
}

/** Waits a limited time until the page is complete and no animation runs. Returns the properties of its PDF. */
async function readyToPrint(
  context: RenderContext,
  options: PrintOptions,
  { ms, ...waiting }: Limits & { ms: number },
): Promise<PdfMetadata> {
  const given = options.pdfOptions?.metadata;
  const soon = { ...waiting, ms: Math.min(LOAD_SOON_MS, ms / 4) };
  const look = options.scrollPage ? undefined : await lookOnce(context, soon, META_TAGS);
  if (look?.isReady) return propertiesOf(look.found, given);
  await loadedSoon(context, soon);
  if (options.scrollPage) {
    await scrollThrough(context, options, { ...waiting, ms: Math.min(LOAD_REST_MS, ms / 2) });
  }
  const [found] = await Promise.all([
    context.evaluate(META_TAGS),
    fontsReady(context, waiting),
    drawingSettled(context, waiting),
  ]);
  return propertiesOf(found, given);
}

function printParameters(options: Partial<PdfOptions> = {}): Protocol.Page.PrintToPDFRequest {
  const paper = paperOf(options);
  const outline = options.outline ?? false;
  return {
    transferMode: "ReturnAsStream",
    landscape: options.landscape ?? false,
    printBackground: options.printBackground ?? false,
    preferCSSPageSize: options.preferCSSPageSize ?? false,
    displayHeaderFooter: options.displayHeaderFooter ?? false,
    headerTemplate: options.headerTemplate ?? "",
    footerTemplate: options.footerTemplate ?? "",
    scale: options.scale ?? 1,
    paperWidth: paper.width,
    paperHeight: paper.height,
    marginTop: paper.top,
    marginRight: paper.right,
    marginBottom: paper.bottom,
    marginLeft: paper.left,
    pageRanges: options.pageRanges ?? "",
    // Chromium creates bookmarks from the tags (crbug.com/840455), so an outline requires tags.
    generateTaggedPDF: outline || (options.tagged ?? true),
    generateDocumentOutline: outline,
  };
}

// Error texts of Chromium and the fault that each means. The protocol has only one code for all refusals to print, so
// they can be distinguished only by their texts.
const FAULTS: Record<string, { pointer: string; message: string }> = {
  "Page range exceeds page count": {
    pointer: "/pdfOptions/pageRanges",
    message: "Expected ranges that begin on a page the document has",
  },
  "Page range syntax error": {
    pointer: "/pdfOptions/pageRanges",
    message: 'Expected pages and ranges, as in "1-3, 5, 8-"',
  },
  "invalid print parameters: content area is empty": {
    pointer: "/pdfOptions/margin",
    message: "Expected margins that leave some of the page",
  },
};

function printError(cause: unknown): unknown {
  if (!(cause instanceof ProtocolError)) return cause;
  const fault = FAULTS[cause.originalMessage];
  if (fault !== undefined) {
    const message = `Cannot print the page: ${fault.message}`;
    return new ActorError("invalid_request", message, { faults: [fault] });
  }
  return refusedByBrowser(cause, "print");
}
