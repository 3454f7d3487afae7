/** `npm run soak -- --minutes N`: runs a whole platform under load for N minutes, and reports what grew or was lost. */
import { parseArgs } from "node:util";
import { soakPlatform } from "./platform-soak.ts";
import { orRefuse, readMinutes } from "./run-options.ts";

const HELP = `npm run soak -- [--minutes N]

Starts a nats-server, a gateway, a host of actors and a browser worker as processes on this machine. Clients commit,
print PDFs, call agents, crawl and mint tokens. Meanwhile the time of day of the platform jumps by days: by libfaketime
where it is installed, otherwise by another Date in the processes.

  --minutes N   how long the load runs; 60 by default

Afterwards it checks that nothing acknowledged is lost, that no work is left, that no memory, descriptors, files, child
processes or bounded streams grew, and that a crawl is refused when its time is over. The exit status is 1 if not.
`;

const options = {
  minutes: { type: "string", default: "60" },
  help: { type: "boolean", default: false },
} as const;
const { values } = orRefuse(() => parseArgs({ options }), HELP);
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const minutes = readMinutes(values.minutes, HELP);
// On a signal, exits the process, so that the listeners for `exit` kill the child processes.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => process.exit(1));
}
const { problems, work, figures, jumps, means } = await soakPlatform(minutes);
console.log(`\n${minutes} minutes: ${JSON.stringify(work)}`);
console.log(`${jumps} jumps of the time of day ${means}`);
for (const { name, early, late } of figures) {
  console.log(`${name.padEnd(30)} ${String(early).padStart(12)} ${String(late).padStart(12)}`);
}
console.log(problems.length === 0 ? "all is well" : problems.join("\n"));
process.exitCode = problems.length === 0 ? 0 : 1;
