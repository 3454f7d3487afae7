/**
 * Retries with pauses that are random up to a growing limit, so that many callers do not retry at the same moment.
 */
import type { RetryOptions } from "./types.ts";

/** Limit of the attempts of `retry` in an app's code. The limit below is for the pause between two attempts. */
export const AGENT_RETRY_ATTEMPTS_MAX = 1_000;
export const AGENT_RETRY_DELAY_MS_MAX = 24 * 3_600_000;

const DEFAULTS = { maxAttempts: 3, baseDelayMs: 100, maxDelayMs: 3_000 };

export type Retry = Required<RetryOptions>;

export function readRetry(options: RetryOptions = {}, defaults: RetryOptions = DEFAULTS): Retry {
  const { maxAttempts, baseDelayMs, maxDelayMs } = {
    ...DEFAULTS,
    ...defined(defaults),
    ...defined(options),
  };
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > AGENT_RETRY_ATTEMPTS_MAX) {
    throw new RangeError(
      `Cannot retry: maxAttempts is ${maxAttempts}, expected 1 to ${AGENT_RETRY_ATTEMPTS_MAX}`,
    );
  }
  for (const [name, value] of Object.entries({ baseDelayMs, maxDelayMs })) {
    if (!(value > 0 && value <= AGENT_RETRY_DELAY_MS_MAX)) {
      throw new RangeError(
        `Cannot retry: ${name} is ${value}, expected more than 0 and at most ${AGENT_RETRY_DELAY_MS_MAX}`,
      );
    }
  }
  if (baseDelayMs > maxDelayMs) {
    throw new RangeError(
      `Cannot retry: baseDelayMs ${baseDelayMs} is above maxDelayMs ${maxDelayMs}`,
    );
  }
  return { maxAttempts, baseDelayMs, maxDelayMs };
}

/** Returns the pause after the failed `attempt`, in milliseconds. */
export function retryDelayMs(retry: Retry, attempt: number): number {
  return Math.random() * Math.min(retry.maxDelayMs, retry.baseDelayMs * 2 ** (attempt - 1));
}

export async function withRetry<T>(
  work: (attempt: number) => T | Promise<T>,
  options: RetryOptions & { shouldRetry?: (error: unknown, nextAttempt: number) => boolean } = {},
  defaults?: RetryOptions,
): Promise<T> {
  const retry = readRetry(options, defaults);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      const isLast = attempt >= retry.maxAttempts;
      if (isLast || options.shouldRetry?.(error, attempt + 1) === false) throw error;
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs(retry, attempt)));
    }
  }
}

function defined(options: RetryOptions): RetryOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
