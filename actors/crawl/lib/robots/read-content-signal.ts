/** Reads the value of one Content-Signal record (draft-romm-aipref-contentsignals). */
import {
  type ContentSignal,
  ContentUse,
  CrawlPurpose,
} from "../../../../schemas/crawl/content-signal.ts";

/**
 * Reads `search=yes, ai-train=no, use=reference`. The last value of a label counts, and unknown labels are ignored.
 */
export function readContentSignal(value: string): ContentSignal {
  const signal: ContentSignal = {};
  for (const part of value.toLowerCase().split(",")) {
    const [label = "", given = "", more] = part.split("=", 3).map((word) => word.trim());
    if (more !== undefined) continue;
    const purpose = CrawlPurpose.safeParse(label);
    const use = ContentUse.safeParse(given);
    if (purpose.success && given === "yes") signal[purpose.data] = true;
    else if (purpose.success && given === "no") signal[purpose.data] = false;
    else if (label === "use" && use.success) signal.use = use.data;
  }
  return signal;
}
