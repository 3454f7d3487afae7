/** A refusal that a page shows to a person. */

interface RefusedMore {
  /** The form field that is wrong. */
  field?: "email" | "password" | "current";
  retryAfterS?: number | undefined;
}

/** The message that the person reads. */
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

/** A form that is not ours, or was shown to another browser, session or time. */
export const staleForm = () => new Refused(403, "This page was open for too long. Try again.");
