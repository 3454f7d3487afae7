/** Listens for stop signals from the start of the process. Imports only modules that load quickly. */

/**
 * A signal within this time after the first one counts as the same key press. The terminal sends Ctrl-C to all
 * processes, and npm also forwards it, so one key press arrives twice.
 */
const SAME_PRESS_MS = 500;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class StopSignal {
  /** Aborted by the first signal. The abort reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Called before a second signal ends the process immediately. */
  onImpatience: (name: string) => void = () => {};
  readonly #controller = new AbortController();
  #firstAt: number | undefined;

  constructor() {
    this.signal = this.#controller.signal;
    for (const name of SIGNALS) process.on(name, () => this.#hear(name));
  }

  #hear(name: string): void {
    if (this.#firstAt === undefined) {
      this.#firstAt = performance.now();
      this.#controller.abort(name);
    } else if (performance.now() - this.#firstAt > SAME_PRESS_MS) {
      this.onImpatience(name);
      process.exit(1);
    }
  }
}
