/** The shape of every answer of the REST API that is not binary. */
import { z } from "zod";

export const WireError = z
  .object({
    code: z.int().describe("A stable number; the document lists all codes"),
    message: z.string(),
    source: z
      .object({ pointer: z.string().describe("JSON pointer to the invalid field") })
      .optional(),
  })
  .meta({ title: "ErrorDetail" });
export type WireError = z.infer<typeof WireError>;

export const ResultInfo = z
  .object({
    page: z.int(),
    per_page: z.int(),
    count: z.int().describe("Number of entries on this page"),
    total_count: z.int(),
    total_pages: z.int(),
  })
  .meta({ title: "ResultInfo" });
export type ResultInfo = z.infer<typeof ResultInfo>;

/** The paging information of a list that is too long or changes too often for numbered pages. */
export const CursorInfo = z
  .object({
    count: z.int().describe("Number of entries in this response"),
    per_page: z.int().optional().describe("Number of entries that were requested"),
    cursor: z
      .string()
      .optional()
      .describe("Present if there are more entries; repeat the request with it"),
  })
  .meta({ title: "CursorInfo" });
export type CursorInfo = z.infer<typeof CursorInfo>;

/**
 * An array that is always empty. Its example is the empty array; otherwise documentation tools would invent an entry.
 */
const Nothing = z
  .array(z.never())
  .max(0)
  .meta({ examples: [[]] });

export function successOf(result: z.ZodType, resultInfo?: z.ZodType) {
  return z.object({
    success: z.literal(true),
    errors: Nothing,
    messages: Nothing,
    result,
    ...(resultInfo ? { result_info: resultInfo } : {}),
  });
}

/** The start of the envelope. A worker's JSON members, which have no braces, follow it, and then "}". */
export const ENVELOPE_START = '{"success":true,"errors":[],"messages":[],';

export const Failure = z.object({
  success: z.literal(false),
  errors: z.array(WireError).min(1),
  messages: Nothing,
  result: z.null(),
});
