/** What is refused to a person, as a page says it. */

interface RefusedMore {
  /** What the person should look at. */
  field?: "email" | "password" | "current";
  retryAfterS?: number | undefined;
}

/** What went wrong, as the person reads it. */
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
export const staleForm = () => new Refused(403, "This page was open for too long. Try once more.");
