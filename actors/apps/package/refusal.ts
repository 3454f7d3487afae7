/**
 * An error of the platform that user code may receive, with the code of the refusal that an outside caller receives.
 */

export class AgentRefusal extends Error {
  /** A code of schemas/errors.ts. */
  readonly refusal: string;

  constructor(refusal: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AgentRefusal";
    this.refusal = refusal;
  }
}

/** The error for a statement that the database refused. */
export class SqlError extends Error {
  readonly query: string;

  constructor(query: string, cause: unknown) {
    super(`SQL query failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "SqlError";
    this.query = query;
  }
}
