/** The browser died during a task. Another attempt may well succeed, so the task is retried and not refused. */
export class BrowserDiedError extends Error {
  /** Wall-clock milliseconds for which the task used the browser. */
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
