/** The command line: finds the command that was asked for and runs it. */
import { adminDead } from "./admin/admin-dead.ts";
import { adminShards } from "./admin/admin-shards.ts";
import { adminTasks } from "./admin/admin-tasks.ts";
import { UsageError } from "./admin/usage-error.ts";
import { version } from "./version.ts";

const HELP = `Usage: trunkline <command>

For operators, on a machine that reaches the bus (TRUNKLINE_NATS_URL, or the embedded one of TRUNKLINE_DATA):
  admin shards                    which host owns which shards, and whether it lives
  admin tasks                     what waits and runs in each lane
  admin dead list                 messages nobody could handle, the oldest first
  admin dead show <number>        one of them, whole
  admin dead retry <number>|--all send it again, and forget it
  admin dead drop <number>|--all  forget it

  --help, after any command too   this text
  --version                       the version of this program
`;

const HINT = "scripts/trunkline --help lists what it can do";

// A server that took the connection and stands still would hold its socket open, and this process.
process.exit(await main(process.argv.slice(2)));

async function main(parameters: string[]): Promise<number> {
  const [area, noun, ...rest] = parameters;
  try {
    if (area === undefined || area === "help" || parameters.some(asksForHelp))
      console.log(HELP.trimEnd());
    else if (area === "--version") console.log(`trunkline ${version()}`);
    else if (area === "admin" && noun === "dead") await adminDead(rest, process.env);
    else if (area === "admin" && noun === "shards") await adminShards(rest, process.env);
    else if (area === "admin" && noun === "tasks") await adminTasks(rest, process.env);
    else if (area === "admin" && noun === undefined)
      throw new UsageError('Cannot run "admin": expected shards, tasks or dead after it');
    else {
      const asked = [area, noun].filter(Boolean).join(" ");
      throw new UsageError(`Cannot run "${asked}": no such command`);
    }
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) {
      console.error(error instanceof Error ? error.message : error);
      return 1;
    }
    console.error(`${error.message}\n${HINT}`);
    return 2;
  }
}

function asksForHelp(parameter: string): boolean {
  return parameter === "--help" || parameter === "-h";
}
