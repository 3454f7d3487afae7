/** An unknown command, or one with missing arguments. The error is printed with a hint to the help. */
export class UsageError extends Error {
  /** The command whose help explains the error; defaults to the help of all commands. */
  readonly hint: string | undefined;

  constructor(message: string, { hint }: { hint?: string } = {}) {
    super(message);
    this.hint = hint;
  }
}
