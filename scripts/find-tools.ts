/** For scripts/setup: prints the path of each tool named on the command line, or fails and names the missing one. */
import { findChromium, findGit, findNatsServer } from "./tools.ts";

const FINDERS = { git: findGit, "nats-server": findNatsServer, chromium: findChromium };

for (const name of process.argv.slice(2)) {
  try {
    const find = Object.entries(FINDERS).find(([tool]) => tool === name)?.[1];
    if (find === undefined) throw new Error(`Cannot find ${name}: no such tool is used`);
    console.log(`${name}: ${find()}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
