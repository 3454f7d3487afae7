/** Reads the options `--minutes` and `--seed` of test programs. An invalid option ends the program. */
import { SeededRandom } from "./seeded-random.ts";

interface RunOptions {
  minutes: number;
  seed: number;
}

export function readRunOptions(
  values: { minutes: string; seed?: string | undefined },
  help = "",
): RunOptions {
  const seed = values.seed ?? String(SeededRandom.newSeed());
  if (!/^\d+$/.test(seed) || !Number.isSafeInteger(Number(seed))) {
    refuseRun(`--seed must be a whole number, found "${seed}"`, help);
  }
  return { minutes: readMinutes(values.minutes, help), seed: Number(seed) };
}

export function readMinutes(text: string, help = ""): number {
  const minutes = Number(text);
  if (minutes > 0 && Number.isFinite(minutes)) return minutes;
  return refuseRun(`--minutes must be a number above 0, found "${text}"`, help);
}

/** Returns the result of `read`. If `read` throws, for example because of parseArgs, ends the program. */
export function orRefuse<T>(read: () => T, help = ""): T {
  try {
    return read();
  } catch (error) {
    return refuseRun(error instanceof Error ? error.message : String(error), help);
  }
}

/** Prints the problem and the help, and exits with code 2. */
export function refuseRun(problem: string, help = ""): never {
  console.error(`Cannot run: ${problem}${help && `\n\n${help}`}`);
  process.exit(2);
}
