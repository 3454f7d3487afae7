/** A command was typed that does not exist, or without what it needs: the help is shown with it. */
export class UsageError extends Error {}
