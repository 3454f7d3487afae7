/** The body of a pdf request: a page, and how it is printed. */
import { z } from "zod";
import {
  PAGE_RANGES_CHARS_MAX,
  PRINT_SCALE_MAX,
  PRINT_SCALE_MIN,
  PRINT_TIMEOUT_MS,
  PRINT_TIMEOUT_MS_MAX,
  TEMPLATE_CHARS_MAX,
} from "../limits.ts";
import { normalizePage, pageParameterFields, pageRules } from "./page-parameters.ts";
import { contentAreaOf, Format, Length } from "./paper.ts";

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
  .optional()
  .describe(
    "HTML; elements with the class title, date, pageNumber, totalPages or url are filled in. Needs a margin to stand in, and a font-size of its own",
  );

export const PdfOptions = z
  .strictObject({
    format: Format.optional(),
    width: Length.optional().describe("Paper width, where no format is given"),
    height: Length.optional().describe("Paper height, where no format is given"),
    landscape: z.boolean().optional(),
    printBackground: z.boolean().optional(),
    preferCSSPageSize: z
      .boolean()
      .optional()
      .describe("A size in the page's @page rule goes first"),
    displayHeaderFooter: z.boolean().optional(),
    headerTemplate: Template,
    footerTemplate: Template,
    scale: z.number().min(PRINT_SCALE_MIN).max(PRINT_SCALE_MAX).optional(),
    margin: z
      .strictObject({
        top: Length.optional(),
        right: Length.optional(),
        bottom: Length.optional(),
        left: Length.optional(),
      })
      .optional(),
    pageRanges: PageRanges.optional(),
    omitBackground: z.boolean().optional().describe("Transparent where the page has no background"),
    tagged: z.boolean().optional().describe("Accessible (tagged) PDF; true when absent"),
    outline: z.boolean().optional().describe("Bookmarks from headings; makes the PDF tagged"),
    timeout: z.int().min(1).max(PRINT_TIMEOUT_MS_MAX).default(PRINT_TIMEOUT_MS),
  })
  .superRefine((options, context) => {
    // Lengths that are wrong in themselves leave no area to speak of.
    if (context.issues.length > 0) return;
    const content = contentAreaOf(options);
    const refused = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (!(content.width > 0)) refused("margin", "Expected margins that leave some of the width");
    if (!(content.height > 0)) refused("margin", "Expected margins that leave some of the height");
  });
export type PdfOptions = z.output<typeof PdfOptions>;

export const PdfRequest = z
  .strictObject({ ...pageParameterFields, pdfOptions: PdfOptions.optional() })
  .check(pageRules)
  .transform(normalizePage);
export type PdfRequest = z.output<typeof PdfRequest>;

/** Chromium's grammar: `5`, `1-3`, `-3`, `8-` and `-`, with commas between; no range runs backwards. */
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
