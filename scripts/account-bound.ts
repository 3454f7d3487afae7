/**
 * Computes how many bytes one account may store: the number of its setting, but not more than ACCOUNT_STREAM_SHARE of
 * one stream of the store. So two accounts together cannot fill a stream.
 */
import type { Logger } from "pino";
import type { Bus } from "../actors/runtime/bus/bus.ts";
import type { Clock } from "../actors/runtime/lib/clock.ts";
import { splitNames } from "../schemas/split-streams.ts";
import { ACCOUNT_STREAM_SHARE } from "../schemas/store-limits.ts";

/** How long the sizes of the streams are known. They grow when a process starts after the disk has grown. */
export const SIZES_KNOWN_MS = 10_000;

interface AccountBoundParts {
  bus: Pick<Bus, "jetstream" | "layout" | "whileConnected">;
  clock: Clock;
  logger: Logger;
  /** The name of the store's first stream. */
  store: string;
  /** The number of bytes that the setting allows. 0 means no limit, even if one account fills a stream. */
  setting: number;
}

export class AccountBound {
  readonly #parts: AccountBoundParts;
  #streamBytes = Number.POSITIVE_INFINITY;
  #readAt: number;
  #isReading = false;

  /** Reads the sizes of the streams, which must exist. */
  static async start(parts: AccountBoundParts): Promise<AccountBound> {
    const bound = new AccountBound(parts);
    await bound.#read();
    return bound;
  }

  private constructor(parts: AccountBoundParts) {
    this.#parts = parts;
    this.#readAt = parts.clock.monotonic();
  }

  /** The bytes that an account may store; 0 means no limit. Reads the sizes again from time to time. */
  get bytes(): number {
    const { setting, clock } = this.#parts;
    if (setting === 0) return 0;
    if (clock.monotonic() - this.#readAt > SIZES_KNOWN_MS) void this.#readAgain();
    return Math.min(setting, Math.floor(this.#streamBytes * ACCOUNT_STREAM_SHARE));
  }

  async #readAgain(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      await this.#read();
    } catch (error) {
      // The last known sizes still hold, because streams never shrink.
      this.#parts.logger.warn({ err: error }, "sizes of streams not read, will try again");
    } finally {
      this.#isReading = false;
    }
  }

  async #read(): Promise<void> {
    const { bus, clock, store } = this.#parts;
    this.#readAt = clock.monotonic();
    const sizes = splitNames(bus.layout, store).map(async (stream) => {
      const { config } = await bus.whileConnected(() => bus.jetstream.streams.info(stream));
      return config.max_bytes > 0 ? config.max_bytes : Number.POSITIVE_INFINITY;
    });
    this.#streamBytes = Math.min(...(await Promise.all(sizes)));
  }
}
