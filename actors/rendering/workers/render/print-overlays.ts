/**
 * Prints the headers and footers of several documents on blank pages, one blank page for each page of the documents.
 * Chromium itself can number only the pages of one document.
 */
import type { PdfOptions } from "../../../../schemas/rendering/http/pdf.ts";
import type { PdfMetadata } from "../../../../schemas/rendering/http/pdf-metadata.ts";
import type { PdfOverlay } from "../../lib/pdf/stamp-pages.ts";
import type { HeldPage } from "./held-page.ts";
import { PdfStream } from "./pdf-stream.ts";

/** Chromium's default templates, for a request without its own. */
const HEADER = `<div class="date text left"></div><div class="title text center"></div>`;
const FOOTER = `<div class="url text left grow"></div><div class="text right"><span class="pageNumber"></span>/<span class="totalPages"></span></div>`;

/** One printed source, without its bytes. */
export interface PrintedSource {
  title: string;
  url: string;
  /** Width and height of each page in points. */
  sizes: [number, number][];
  status: number | undefined;
  properties: PdfMetadata;
}

interface Documents {
  pdfOptions: PdfOptions | undefined;
  printed: readonly PrintedSource[];
  read: (stream: PdfStream) => Promise<Uint8Array>;
}

export async function printOverlays(
  held: HeldPage,
  { pdfOptions, printed, read }: Documents,
): Promise<PdfOverlay[]> {
  const sizes = printed.flatMap((source) => source.sizes);
  const header = pdfOptions?.headerTemplate || HEADER;
  const footer = pdfOptions?.footerTemplate || FOOTER;
  const hasOwnPages = pdfOptions?.preferCSSPageSize === true;
  using document = await held.load({ html: blankPages(sizes, hasOwnPages) });
  const options = {
    ...pdfOptions,
    ...(hasOwnPages && { landscape: false }),
    tagged: false,
    outline: false,
    metadata: undefined,
  } as PdfOptions;
  const overlays: PdfOverlay[] = [];
  const isSame = !/title|url/.test(header + footer);
  const whole = { title: "", url: "", sizes };
  let firstPage = 0;
  for (const { title, url, sizes: own } of isSame ? [whole] : printed) {
    await held.context.evaluate(`document.title = ${JSON.stringify(title)}`);
    const [headerTemplate, footerTemplate] = (await held.context.evaluate(
      `(${WITH_ADDRESS})(${JSON.stringify([header, footer])}, ${JSON.stringify(url)})`,
    )) as [string, string];
    const pageRanges = `${firstPage + 1}-${firstPage + own.length}`;
    const parts = { ...options, headerTemplate, footerTemplate, pageRanges };
    const printing = { ...held.limits, document };
    const stream = await PdfStream.print(held.context, { pdfOptions: parts }, printing);
    overlays.push({ pdf: await read(stream), firstPage });
    firstPage += own.length;
  }
  return overlays;
}

/**
 * Returns the HTML of the blank pages. With `hasOwnSizes`, each blank page gets the size of the page that it covers.
 */
function blankPages(sizes: readonly [number, number][], hasOwnSizes: boolean): string {
  const names = new Map<string, string>();
  const pages = sizes.map(([width, height]) => {
    const size = `${width}pt ${height}pt`;
    const name = names.get(size) ?? `size${names.size}`;
    names.set(size, name);
    return `<div style="page: ${name}"></div>`;
  });
  const rules = Array.from(names, ([size, name]) => `@page ${name} { size: ${size} }`);
  const style = `div { break-after: page; height: 1px } div:last-child { break-after: auto } body { margin: 0 }`;
  return `<style>${style} ${hasOwnSizes ? rules.join(" ") : ""}</style>${pages.join("")}`;
}

// Runs in the page: writes the document's address into templates, because the blank pages have another address.
const WITH_ADDRESS = `(templates, url) => templates.map((template) => {
  const { body } = new DOMParser().parseFromString("<body>" + template, "text/html");
  for (const element of [...body.getElementsByClassName("url")]) {
    element.textContent = url;
    element.classList.remove("url");
  }
  return body.innerHTML;
})`;
