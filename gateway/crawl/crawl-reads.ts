/** Counts the responses with records in progress, so that slow clients of one account do not block other accounts. */
import { SharedSlots } from "../../actors/runtime/lib/shared-slots.ts";
import {
  CRAWL_READS_MAX,
  CRAWL_READS_OF_ACCOUNT_MAX,
  CRAWL_SHARE_KEPT_FREE,
} from "../../schemas/crawl/limits.ts";
import { ActorError } from "../../schemas/errors.ts";

export class CrawlReads {
  readonly #slots = new SharedSlots<string>({
    max: CRAWL_READS_MAX,
    perOwner: CRAWL_READS_OF_ACCOUNT_MAX,
    keptFree: CRAWL_READS_MAX * CRAWL_SHARE_KEPT_FREE,
  });

  /** Reserves a read. The caller must call the returned function at the end. Throws a refusal at the limit. */
  reserve(account: string): () => void {
    const release = this.#slots.tryTake(account);
    if (release) return release;
    if (this.#slots.takenBy(account) >= CRAWL_READS_OF_ACCOUNT_MAX) {
      const text = `Cannot read crawl: the account reads ${CRAWL_READS_OF_ACCOUNT_MAX} already`;
      throw new ActorError("rate_limited", text, { retryAfterS: 1 });
    }
    const { taken } = this.#slots;
    const text = `Cannot read crawl: ${taken} of ${CRAWL_READS_MAX} are being read here already`;
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }
}
