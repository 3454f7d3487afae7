/** `npm run chaos -- --minutes N --seed S`: breaks a cluster under load at random, then checks what must hold. */
import { parseArgs } from "node:util";
import { orRefuse, readRunOptions } from "../run-options.ts";
import { runChaos } from "./run-chaos.ts";

const HELP = `npm run chaos -- [--minutes N] [--seed S]

Starts three nats-servers, two gateways, two hosts of actors and two browsers as processes on this machine.
Clients push and commit to repositories, mint and revoke tokens, change OAuth clients, send signed webhooks,
watch agents by sockets, crawl and print PDFs. Meanwhile processes and servers are killed, stopped and
continued, cut off and rolled.

  --minutes N   how long things are broken; 3 by default
  --seed S      a whole number that repeats the choices of a run; by default a new one, which is printed

Afterwards it checks that nothing acknowledged is lost or doubled, that histories are linearizable, that
revoked tokens stay revoked, that crawled hosts were not asked too early, that sockets show the stored state,
that clones are whole (git fsck), and that no memory, files or streams grow. The exit status is 1 if not.
`;

const options = {
  minutes: { type: "string", default: "3" },
  seed: { type: "string" },
  help: { type: "boolean", default: false },
} as const;
const { values } = orRefuse(() => parseArgs({ options }), HELP);
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const { minutes, seed } = readRunOptions(values, HELP);
console.log(`--minutes ${minutes} --seed ${seed} repeats the choices of this run`);
// On a signal, exits the process, so that the listeners for `exit` kill the child processes.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => process.exit(1));
}
// Disables the warning about many listeners: each restarted process and each server adds a listener for our exit.
process.setMaxListeners(0);
const problems = await runChaos({ ms: minutes * 60_000, seed, print: console.log });
if (problems.length === 0) console.log("all is well");
else {
  console.log(`${problems.length} violations:\n${problems.join("\n")}`);
  process.exitCode = 1;
}
