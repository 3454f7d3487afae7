/** Counts the responses with records in progress, so that slow clients of one account do not block other accounts. */
import { CRAWL_READS_MAX } from "../../schemas/crawl/limits.ts";
import { ActorError } from "../../schemas/errors.ts";

/**
 * Concurrent responses with records of one account: a quarter, so that slow clients of one account do not block
 * others.
 */
export const CRAWL_READS_OF_ACCOUNT_MAX = 16;

export class CrawlReads {
  readonly #ofAccount = new Map<string, number>();
  #open = 0;

  /** Reserves a read. The caller must call the returned function at the end. Throws a refusal at the limit. */
  reserve(account: string): () => void {
    const ofAccount = this.#ofAccount.get(account) ?? 0;
    if (ofAccount >= CRAWL_READS_OF_ACCOUNT_MAX) {
      const text = `Cannot read crawl: the account reads ${CRAWL_READS_OF_ACCOUNT_MAX} already`;
      throw new ActorError("rate_limited", text, { retryAfterS: 1 });
    }
    if (this.#open >= CRAWL_READS_MAX) {
      const text = `Cannot read crawl: ${CRAWL_READS_MAX} are being read here already`;
      throw new ActorError("busy", text, { retryAfterS: 1 });
    }
    this.#open += 1;
    this.#ofAccount.set(account, ofAccount + 1);
    return () => {
      this.#open -= 1;
      const left = (this.#ofAccount.get(account) ?? 1) - 1;
      if (left === 0) this.#ofAccount.delete(account);
      else this.#ofAccount.set(account, left);
    };
  }
}
