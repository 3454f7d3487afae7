/** Listens for stop signals from the first moment. It imports nothing that takes time to load. */

/** npm forwards the Ctrl-C that the terminal has sent already, so one press arrives twice. */
const SAME_PRESS_MS = 500;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class StopSignal {
  /** Aborted by the first signal, whose name is the reason. */
  readonly signal: AbortSignal;
  /** Called before a second signal ends the process at once. */
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
