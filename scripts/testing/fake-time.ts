/**
 * Changes the time of day that processes see, by libfaketime if it is installed. Their monotonic clocks do not
 * change.
 */
import { globSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Paths of libfaketime.so.1 from the Debian package `libfaketime`. The environment variable LIBFAKETIME overrides
 * them.
 */
const PATHS = ["/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1"];

export class FakeTime {
  readonly #library: string;
  readonly #file: string;

  /** Returns undefined if libfaketime is not installed. Stores the fake time in a file in `folder`. */
  static async find(folder: string): Promise<FakeTime | undefined> {
    const library = process.env.LIBFAKETIME ?? globSync(PATHS)[0];
    if (library === undefined) return undefined;
    const time = new FakeTime(library, join(folder, "faketime"));
    await time.jumpTo(0);
    return time;
  }

  constructor(library: string, file: string) {
    this.#library = library;
    this.#file = file;
  }

  /**
   * The environment of a process whose time of day changes. This has no effect on nats-server, because Go programs
   * read the time directly from the kernel.
   */
  get environment(): NodeJS.ProcessEnv {
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
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
