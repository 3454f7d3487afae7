/** A command was typed that does not exist, or without what it needs: a hint to the help is shown with it. */
export class UsageError extends Error {}
