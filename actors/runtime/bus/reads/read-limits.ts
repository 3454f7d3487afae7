/**
 * Limits the stored bytes that are on their way to one connection. The server closes a connection to which it has
 * more than 64 MB to send (`max_pending`). The lease of a host is renewed on the same connection.
 */
import { SHARD_STARTS_MAX } from "../../../../schemas/limits.ts";
import { FairSemaphore } from "../../lib/fair-semaphore.ts";
import { Semaphore } from "../../lib/semaphore.ts";

/** An answer of `readDirect` has up to 1.5 MB, so the logs of agents take 12 MB at most. */
const LOGS_AT_ONCE = 8;
/** A chunk of a blob has 512 KiB, so chunks take 13 MB at most. */
const CHUNKS_AT_ONCE = 24;
/** A value has up to 720 kB, and 960 kB in an answer, so values take 23 MB at most. Most have a few kB. */
const VALUES_AT_ONCE = 24;
/** Each has ROWS_PREFETCH_BYTES on their way. */
const ROW_READS_AT_ONCE = 8;
/** A mail has up to 1 MB. */
const MAIL_READS_AT_ONCE = 8;
/** A message has up to 1 MB. */
const LARGE_MESSAGES_AT_ONCE = 4;

export class ReadLimits {
  /** Limits how many readers of shards start at the same time. */
  readonly readerStarts = new Semaphore(SHARD_STARTS_MAX);
  /**
   * Limits how many logs of agents are taken over, or lose messages, at the same time. Accounts, which the first two
   * tokens of a log's subject identify, take turns: thousands of agents of one account may open at once.
   */
  readonly logs = new FairSemaphore({ places: LOGS_AT_ONCE });
  /**
   * Limits how many messages of blobs are read at the same time. Owners, which the first two tokens of a blob's name
   * identify, take turns: an account may read many large packs.
   */
  readonly chunks = new FairSemaphore({ places: CHUNKS_AT_ONCE });
  /**
   * Limits how many actors read their value or a few rows at the same time. More loads slow each other down, and delay
   * the renewal of the host's lease.
   */
  readonly values = new Semaphore(VALUES_AT_ONCE);
  /**
   * Limits how many actors read skipped mail, or remove the mail from before they were forgotten, at the same time. It
   * is a limit of its own, because a stream of mail that does not answer must not delay loads.
   */
  readonly mail = new Semaphore(MAIL_READS_AT_ONCE);
  /** Limits how many actors read many rows at the same time. */
  readonly rows = new Semaphore(ROW_READS_AT_ONCE);
  /** Limits how many readers receive a message at the same time that is larger than their request allows. */
  readonly largeMessages = new Semaphore(LARGE_MESSAGES_AT_ONCE);
}
