/** The body of a pdf request: a page, and how it is printed. */
import { z } from "zod";
import { shapedLike } from "../../http/shaped-like.ts";
import {
  PAGE_RANGES_CHARS_MAX,
  PRINT_SCALE_MAX,
  PRINT_SCALE_MIN,
  PRINT_TIMEOUT_MS,
  PRINT_TIMEOUT_MS_MAX,
  TEMPLATE_CHARS_MAX,
} from "../../limits.ts";
import { Sources } from "./page-files.ts";
import {
  documentFields,
  normalizePage,
  pageParameterFields,
  pageRules,
} from "./page-parameters.ts";
import { contentAreaOf, Format, Length } from "./paper.ts";
import { PdfMetadata } from "./pdf-metadata.ts";

const PageRanges = z
  .string()
  .max(PAGE_RANGES_CHARS_MAX)
  .refine((ranges) => isPageRanges(ranges), {
    error: 'Expected pages and ranges from 1 upwards, separated by commas, as in "1-3, 5, 8-"',
  })
  .describe('Pages to print, as in "1-3, 5, 8-"; empty for all');

const Template = z
  .string()
  .max(TEMPLATE_CHARS_MAX)
  .refine((html) => !loadsStyles(html), {
    error: "Expected a template that holds its styles itself, without @import and <link>",
  })
  .optional()
  .describe(
    "HTML; elements with the class title, date, pageNumber, totalPages or url are filled in. Needs a margin to stand in, and a font-size of its own",
  );

export const PdfOptions = z
  .strictObject({
    // No default: generated clients send defaults, and a format makes the server ignore width and height.
    format: Format.optional(),
    width: Length.optional().describe("Paper width; ignored if `format` is given"),
    height: Length.optional().describe("Paper height; ignored if `format` is given"),
    landscape: flag(false).describe("Prints in landscape orientation"),
    printBackground: flag(false).describe("Print background colours and images"),
    preferCSSPageSize: flag(false).describe("Lets the page's CSS @page size override the options"),
    displayHeaderFooter: flag(false).describe("Print the header and the footer template"),
    headerTemplate: Template,
    footerTemplate: Template,
    scale: z
      .number()
      .min(PRINT_SCALE_MIN)
      .max(PRINT_SCALE_MAX)
      .optional()
      .describe("Scale of the content; 1 is the original size")
      .meta({ default: 1 }),
    margin: z
      .strictObject(
        {
          top: Length.optional(),
          right: Length.optional(),
          bottom: Length.optional(),
          left: Length.optional(),
        },
        { error: shapedLike({ top: "2cm", left: "1in" }) },
      )
      .optional()
      .describe("Margin on each side")
      .meta({ default: { top: 0, right: 0, bottom: 0, left: 0 } }),
    pageRanges: PageRanges.optional(),
    omitBackground: flag(false).describe("Prints no white background where the page has none"),
    tagged: flag(true).describe("Makes an accessible (tagged) PDF"),
    outline: flag(false).describe("Makes bookmarks from headings; implies `tagged`"),
    metadata: PdfMetadata.optional(),
    timeout: z
      .int()
      .min(1)
      .max(PRINT_TIMEOUT_MS_MAX)
      .default(PRINT_TIMEOUT_MS)
      .describe("Time limit for printing, in milliseconds"),
  })
  .superRefine((options, context) => {
    // If a length itself is invalid, the content area cannot be computed.
    if (context.issues.length > 0) return;
    const content = contentAreaOf(options);
    const refused = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (!(content.width > 0))
      refused("margin", "Expected smaller margins: left and right leave no width for the content");
    if (!(content.height > 0))
      refused("margin", "Expected smaller margins: top and bottom leave no height for the content");
  })
  .meta({ title: "PdfOptions" });
export type PdfOptions = z.output<typeof PdfOptions>;

export const PdfRequest = z
  .strictObject({
    ...pageParameterFields,
    ...documentFields,
    sources: Sources.optional(),
    pdfOptions: PdfOptions.optional().describe("How the page is printed"),
  })
  .check(pageRules)
  .check(({ value, issues }) => {
    if (value.sources === undefined) return;
    const refused = (path: string[], message: string) =>
      issues.push({ code: "custom", path, message, input: value });
    if (value.report)
      refused(["report"], "Expected no report with sources, which are several pages");
    if (value.pdfOptions?.pageRanges) {
      refused(
        ["pdfOptions", "pageRanges"],
        "Expected no pageRanges with sources: all their pages are printed",
      );
    }
  })
  .meta({ example: { html: "<h1>Hello</h1>", pdfOptions: { format: "a4" } } })
  .transform(normalizePage);
export type PdfRequest = z.output<typeof PdfRequest>;

/**
 * An optional boolean that stays undefined if absent. The default here is only documentation; the printing code
 * applies it.
 */
function flag(whenAbsent: boolean) {
  return z.boolean().optional().meta({ default: whenAbsent });
}

/**
 * Whether the text is a list of page ranges in Chromium's grammar: `5`, `1-3`, `-3`, `8-` and `-`, separated by
 * commas. No range may run backwards.
 */
function isPageRanges(text: string): boolean {
  if (text.trim() === "") return true;
  return text.split(",").every((range) => {
    const [, only, first, last] =
      /^\s*(?:(\d{1,9})|(\d{0,9})\s*-\s*(\d{0,9}))\s*$/.exec(range) ?? [];
    if (only !== undefined) return Number(only) >= 1;
    if (first === undefined || last === undefined) return false;
    const from = Number(first === "" ? 1 : first);
    return from >= 1 && (last === "" || from <= Number(last));
  });
}

/**
 * Whether a template loads style sheets. Templates have no network, and one that waits for an external style sheet
 * crashes Chromium when it prints.
 */
function loadsStyles(html: string): boolean {
  const imports = html.matchAll(/@import\s*(?:url\(\s*)?["']?/gi);
  const links = html.match(/<link\b[^<>]*/gi) ?? [];
  return (
    imports.some(
      ({ 0: { length }, index }) => !/^data:/i.test(html.slice(index + length, index + length + 5)),
    ) || links.some((link) => /stylesheet/i.test(link) && !/\bhref\s*=\s*["']?data:/i.test(link))
  );
}
