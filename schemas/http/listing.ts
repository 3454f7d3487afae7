/** The query parameters that all listings have. */
import { z } from "zod";
import { PAGE_ENTRIES, PAGE_ENTRIES_MAX } from "../limits.ts";

export const listingFields = {
  page: z.coerce.number().pipe(z.int().min(1)).default(1),
  per_page: z.coerce.number().pipe(z.int().min(1).max(PAGE_ENTRIES_MAX)).default(PAGE_ENTRIES),
  direction: z
    .enum(["asc", "desc"])
    .default("asc")
    .describe("Sort order: oldest (asc) or newest (desc) first"),
};
export const Listing = z.strictObject(listingFields);
export type Listing = z.output<typeof Listing>;
