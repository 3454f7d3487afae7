/** Returns memory that the start no longer needs to the operating system. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Runs one garbage collection, which takes 0.1 s. Loading the modules leaves 35 MB of garbage, and an idle instance
 * would keep it, because V8 collects only when memory becomes short.
 */
export function returnMemory(): void {
  setFlagsFromString("--expose-gc");
  const collect: (options: { type: "major"; flavor: "last-resort" }) => void =
    runInNewContext("gc");
  collect({ type: "major", flavor: "last-resort" });
}
