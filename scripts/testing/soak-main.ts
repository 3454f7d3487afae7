/** `npm run soak -- --minutes N`: a whole platform under load for so long, and a report of what grew or was lost. */
import { parseArgs } from "node:util";
import { soakPlatform } from "./platform-soak.ts";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "60" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0))
  throw new Error(`Cannot soak: --minutes is ${values.minutes}; it must be above 0`);
const { problems, work, figures, jumps, hasFakeTime } = await soakPlatform(minutes);
console.log(`\n${minutes} minutes: ${JSON.stringify(work)}`);
console.log(hasFakeTime ? `${jumps} jumps of the time of day` : "no jumps: libfaketime is missing");
for (const { name, early, late } of figures) {
  console.log(`${name.padEnd(30)} ${String(early).padStart(12)} ${String(late).padStart(12)}`);
}
console.log(problems.length === 0 ? "all is well" : problems.join("\n"));
process.exitCode = problems.length === 0 ? 0 : 1;
