/** The part of a robots.txt that concerns one crawler, in the short form that an actor stores. */
import { z } from "zod";
import { ContentSignal } from "./content-signal.ts";
import { CRAWL_DELAY_MS_MAX } from "./limits.ts";

export const RobotsRules = z.object({
  /** `<line>+<pattern>` allows and `<line>-<pattern>` disallows. Patterns are normalised (see robots-path.ts). */
  rules: z.array(z.string()),
  crawlDelayMs: z.number().min(0).max(CRAWL_DELAY_MS_MAX).optional(),
  contentSignal: ContentSignal,
  /** Absolute addresses in the order of the file. */
  sitemaps: z.array(z.string()),
  /** The file was longer than the limit; the rest is missing here. */
  truncated: z.boolean(),
});
export type RobotsRules = z.output<typeof RobotsRules>;
