/** What one crawler has to know of a robots.txt, in the short form an actor keeps. */
import { z } from "zod";
import { ContentSignal } from "./content-signal.ts";
import { CRAWL_DELAY_MS_MAX } from "./limits.ts";

export const RobotsRules = z.object({
  /** `<line>+<pattern>` allows, `<line>-<pattern>` disallows; patterns are in normal form (see robots-path.ts). */
  rules: z.array(z.string()),
  crawlDelayMs: z.number().min(0).max(CRAWL_DELAY_MS_MAX).optional(),
  contentSignal: ContentSignal,
  /** Absolute addresses, in the order of the file. */
  sitemaps: z.array(z.string()),
  /** The file had more than is read or kept; what came later is not in here. */
  truncated: z.boolean(),
});
export type RobotsRules = z.output<typeof RobotsRules>;
