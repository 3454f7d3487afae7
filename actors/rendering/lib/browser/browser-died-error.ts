/** The browser ended under a task, which may well succeed in another: not a refusal, so the task is tried again. */
export class BrowserDiedError extends Error {
  /** Wall-clock milliseconds it was held by the task. */
  readonly browserMs: number;

  constructor(message: string, options: ErrorOptions & { browserMs?: number } = {}) {
    super(message, options);
    this.name = "BrowserDiedError";
    this.browserMs = options.browserMs ?? 0;
  }
}

/** The browser did not start, so the page is not at fault. */
export class BrowserNotStartedError extends BrowserDiedError {}

/** The renderer of the page crashed, while its browser and all other pages went on. */
export class RendererCrashedError extends BrowserDiedError {}
