/**
 * For scripts/setup: prints where each tool named on the command line lies, or fails saying what is missing. `folder`
 * prints the folder for tools alone.
 */
import { findChromium, findGit, findNatsServer, TOOLS } from "./tools.ts";

const FINDERS = { git: findGit, "nats-server": findNatsServer, chromium: findChromium };

for (const name of process.argv.slice(2)) {
  if (name === "folder") {
    console.log(TOOLS);
    continue;
  }
  try {
    const find = Object.entries(FINDERS).find(([tool]) => tool === name)?.[1];
    if (find === undefined) throw new Error(`Cannot find ${name}: no such tool is used`);
    console.log(`${name}: ${find()}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
