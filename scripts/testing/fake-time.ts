/**
 * Changes the time of day that processes of Node see: by libfaketime if it is installed, and otherwise by another
 * `Date`. Their monotonic clocks do not change. Processes of apps inherit no variables, so their time does not change.
 */
import { globSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Paths of libfaketime.so.1 from the Debian package `libfaketime`. The environment variable LIBFAKETIME overrides
 * them.
 */
const PATHS = ["/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1"];
const DATE = join(import.meta.dirname, "leaping-date.ts");

export class FakeTime {
  readonly #library: string | null;
  readonly #file: string;

  /** Stores the fake time in a file in `folder`. `library` is the path of libfaketime; null does without it. */
  static async start(
    folder: string,
    library: string | null = process.env.LIBFAKETIME ?? globSync(PATHS)[0] ?? null,
  ): Promise<FakeTime> {
    const time = new FakeTime(join(folder, "faketime"), library);
    await time.jumpTo(0);
    return time;
  }

  constructor(file: string, library: string | null) {
    this.#file = file;
    this.#library = library;
  }

  /** Says by what the time changes. */
  get means(): string {
    return this.#library === null ? "by a Date of Node" : "by libfaketime";
  }

  /**
   * The environment of a process whose time of day changes. This has no effect on nats-server: Go programs read the
   * time directly from the kernel.
   */
  get environment(): NodeJS.ProcessEnv {
    const file = { FAKETIME_TIMESTAMP_FILE: this.#file };
    if (this.#library === null) return { ...file, NODE_OPTIONS: `--import=${DATE}` };
    return {
      ...file,
      LD_PRELOAD: this.#library,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      // With this variable, the child processes of these processes read the file too.
      FAKETIME_DONT_RESET: "1",
    };
  }

  /** Sets the processes' time of day to `seconds` after the machine's. */
  async jumpTo(seconds: number): Promise<void> {
    await writeFile(this.#file, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  }
}
