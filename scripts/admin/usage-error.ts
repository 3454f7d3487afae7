/** A command was typed that does not exist, or without what it needs: a hint to the help is shown with it. */
export class UsageError extends Error {
  /** Where its help is, where that is not the one of all commands. */
  readonly hint: string | undefined;

  constructor(message: string, { hint }: { hint?: string } = {}) {
    super(message);
    this.hint = hint;
  }
}
