/** A refusal that a page shows to a person. */

interface RefusedMore {
  /** The form field that is wrong. */
  field?: "email" | "password" | "current";
  retryAfterS?: number | undefined;
}

/** A refusal whose message the person reads. */
export class Refused extends Error {
  readonly status: number;
  readonly field: RefusedMore["field"];
  readonly retryAfterS: number | undefined;

  constructor(status: number, message: string, { field, retryAfterS }: RefusedMore = {}) {
    super(message);
    this.status = status;
    this.field = field;
    this.retryAfterS = retryAfterS;
  }
}

/**
 * The refusal of a form with an invalid mark: it was not rendered here, or for another browser, session or purpose,
 * or too long ago.
 */
export const staleForm = () => new Refused(403, "This page was open for too long. Try again.");
