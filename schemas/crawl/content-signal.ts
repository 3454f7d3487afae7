/**
 * The uses of its content that a site allows (draft-romm-aipref-contentsignals), as actors store and exchange them.
 */
import { z } from "zod";

/** The purpose of a crawl. A signal of the same name allows or forbids it. */
export const CrawlPurpose = z.enum(["search", "ai-input", "ai-train"]);
export type CrawlPurpose = z.output<typeof CrawlPurpose>;

/** The extent of a use. Each level includes the levels before it. */
export const ContentUse = z.enum(["immediate", "reference", "full"]);
export type ContentUse = z.output<typeof ContentUse>;

/** A missing label neither allows nor forbids. */
export const ContentSignal = z.object({
  search: z.boolean().optional(),
  "ai-input": z.boolean().optional(),
  "ai-train": z.boolean().optional(),
  use: ContentUse.optional(),
});
export type ContentSignal = z.output<typeof ContentSignal>;

/**
 * Error text for a crawl that the content signal of its start URL's site forbids. Clients of the public API compare
 * this text.
 */
export const CRAWL_DISALLOWED_TEXT =
  "Crawl purpose(s) completely disallowed by Content-Signal directive";
