/** Compares a site's content signal with the purpose of a crawl. */

import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { ContentSignal, ContentUse } from "../../../../schemas/crawl/content-signal.ts";
import type { CrawlIntent } from "../../../../schemas/crawl/site.ts";

/** Returns why the signal forbids the crawl; undefined where it does not. A missing label forbids nothing. */
export function signalRefusal(
  signal: DeepReadonly<ContentSignal>,
  intent: DeepReadonly<CrawlIntent>,
): string | undefined {
  const purpose = intent.purposes.find((candidate) => signal[candidate] === false);
  if (purpose !== undefined) return `Content-Signal says ${purpose}=no`;
  const { contentUse = "full" } = intent;
  if (signal.use === undefined || LEVELS[contentUse] <= LEVELS[signal.use]) return undefined;
  return `Content-Signal says use=${signal.use}, the crawl's contentUse is ${contentUse}`;
}

const LEVELS: Record<ContentUse, number> = { immediate: 0, reference: 1, full: 2 };
