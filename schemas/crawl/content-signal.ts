/** What a site says its content may be used for (draft-romm-aipref-contentsignals), as actors keep and exchange it. */
import { z } from "zod";

/** What a crawl is for. A signal of the same name says yes or no to it. */
export const CrawlPurpose = z.enum(["search", "ai-input", "ai-train"]);
export type CrawlPurpose = z.output<typeof CrawlPurpose>;

/** How far content may be used, each level including those before it. */
export const ContentUse = z.enum(["immediate", "reference", "full"]);
export type ContentUse = z.output<typeof ContentUse>;

/** A label that is missing says neither yes nor no. */
export const ContentSignal = z.object({
  search: z.boolean().optional(),
  "ai-input": z.boolean().optional(),
  "ai-train": z.boolean().optional(),
  use: ContentUse.optional(),
});
export type ContentSignal = z.output<typeof ContentSignal>;

/** What a client hears when the signal of the start's site forbids the crawl: the public API's words, which clients look for. */
export const CRAWL_DISALLOWED_TEXT =
  "Crawl purpose(s) completely disallowed by Content-Signal directive";
