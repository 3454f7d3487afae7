/** Reads the progress of an import from git's output. */
import type { ImportProgress } from "../../../schemas/repositories/repo.ts";

/** Reads the output of `git fetch --progress`, whose lines end with a carriage return. */
export function progressOf(tell: (progress: ImportProgress) => void): (text: string) => void {
  let line = "";
  return (text) => {
    const lines = `${line}${text}`.split(/[\r\n]/);
    line = (lines.pop() ?? "").slice(-PROGRESS_CHARS_MAX);
    for (const output of lines) {
      const [, what, percent] =
        /^(Receiving objects|Resolving deltas): +(\d{1,3})%/.exec(output) ?? [];
      if (what === undefined) continue;
      const step = what === "Receiving objects" ? "receiving" : "resolving";
      tell({ step, percent: Math.min(100, Number(percent)) });
    }
  };
}
const PROGRESS_CHARS_MAX = 1_000;
