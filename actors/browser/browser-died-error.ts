/** The browser ended under a task, which may well succeed in another: not a refusal, so the task is tried again. */
export class BrowserDiedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "BrowserDiedError";
  }
}

/** It did not even start: the page is not at fault. */
export class BrowserNotStartedError extends BrowserDiedError {}
