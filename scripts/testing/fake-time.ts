/** Lets a test move the time of day of processes, where libfaketime is installed. Their monotonic clocks stay true. */
import { globSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** libfaketime.so.1 of the Debian package `libfaketime`, or LIBFAKETIME. */
const PATHS = ["/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1"];

export class FakeTime {
  readonly #library: string;
  readonly #file: string;

  /** Returns undefined where libfaketime is missing. Keeps its file in `folder`. */
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

  /** For a process whose time of day moves. nats-server is no such process: Go asks the kernel by itself. */
  get environment(): NodeJS.ProcessEnv {
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      // Their child processes read the file too.
      FAKETIME_DONT_RESET: "1",
    };
  }

  /** Sets the time of day to this many seconds after the machine's. */
  async jumpTo(seconds: number): Promise<void> {
    await writeFile(this.#file, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  }
}
