/**
 * For scripts/setup: prints the path of each tool named on the command line, or fails and says what is missing. The
 * word `folder` prints the folder in which set-up installs tools.
 */
import { findChromium, findGit, findNatsServer, NATS_SERVER_RESTORE_MIN, TOOLS } from "./tools.ts";

const FINDERS = {
  git: () => findGit(),
  "nats-server": () => findNatsServer(),
  "nats-server-for-restore": () => findNatsServer(NATS_SERVER_RESTORE_MIN),
  chromium: () => findChromium(),
};

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
