/** A failed request to a model. The message is for users and names no secret. */
export class AiFault extends Error {
  /** HTTP status of the response, if there was one. */
  readonly status: number | undefined;
  /** Whether a retry may succeed. */
  readonly retry: boolean;
  /** Delay that the response asked for (Retry-After). */
  readonly waitMs: number | undefined;

  constructor(
    message: string,
    options: ErrorOptions & { status?: number; retry: boolean; waitMs?: number | undefined },
  ) {
    super(message, options);
    this.status = options.status;
    this.retry = options.retry;
    this.waitMs = options.waitMs;
  }
}
