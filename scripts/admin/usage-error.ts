/** A user's error: an unknown command, or missing arguments. It is printed with a reference to the help. */
export class UsageError extends Error {
  /** The command whose help explains the error; defaults to the help of all commands. */
  readonly hint: string | undefined;

  constructor(message: string, { hint }: { hint?: string } = {}) {
    super(message);
    this.hint = hint;
  }
}
