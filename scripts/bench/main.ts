/**
 * Runs the benchmarks: `npm run bench -- [start of a name]… [--json file] [--profile folder] [--servers n]`. A missed
 * target does not make the run fail; only an error does.
 */
import { writeFileSync } from "node:fs";
import { appBroadcasts, appCold, appSockets, appWebhooks } from "./apps/apps.ts";
import { backup } from "./backup/backup.ts";
import { type Benchmark, type Figure, isMet, ratioOf } from "./benchmark.ts";
import { crawl } from "./crawl/crawl.ts";
import { crawlDeath } from "./crawl/crawl-death.ts";
import { crawlFrontier } from "./crawl/crawl-frontier.ts";
import { crawlManual } from "./crawl/crawl-manual.ts";
import { markdown } from "./crawl/markdown.ts";
import { loadAverage, machineFacts } from "./machine.ts";
import { oauth } from "./oauth/oauth.ts";
import { signIn } from "./oauth/sign-in.ts";
import { readOptions, usageOf } from "./options.ts";
import {
  renderingCalls,
  renderingHtml,
  renderingIdle,
  renderingUrl,
} from "./rendering/rendering.ts";
import { settled } from "./rendering/settled.ts";
import { markdownTable } from "./report.ts";
import { git } from "./repositories/git.ts";
import { runtimeCalls } from "./runtime/runtime-calls.ts";
import { runtimeChanges } from "./runtime/runtime-changes.ts";
import { runtimeHosts } from "./runtime/runtime-hosts.ts";
import { runtimeMail } from "./runtime/runtime-mail.ts";
import { runtimePassive } from "./runtime/runtime-passive.ts";
import { runtimeRolling } from "./runtime/runtime-rolling.ts";
import { runtimeStreams } from "./runtime/runtime-streams.ts";
import { runtimeTakeover } from "./runtime/runtime-takeover.ts";
import { startMemory } from "./start-memory.ts";

const BENCHMARKS: readonly Benchmark[] = [
  runtimeCalls,
  runtimeChanges,
  runtimeMail,
  runtimeTakeover,
  runtimeHosts,
  runtimeRolling,
  runtimePassive,
  runtimeStreams,
  startMemory,
  renderingHtml,
  renderingUrl,
  renderingCalls,
  renderingIdle,
  settled,
  crawl,
  crawlFrontier,
  crawlDeath,
  crawlManual,
  markdown,
  git,
  oauth,
  signIn,
  appWebhooks,
  appBroadcasts,
  appCold,
  appSockets,
  backup,
];

const options = optionsOf(process.argv.slice(2));
// With this variable, the runtime benchmarks run on a cluster of this many servers.
if (options.servers) process.env.TRUNKLINE_BENCH_SERVERS = options.servers;
// With this variable, every process of a benchmark writes a CPU profile to this folder.
if (options.profile) process.env.TRUNKLINE_BENCH_PROFILE = options.profile;

// Turns a signal into a normal exit of this process, because its `exit` listeners end the child processes.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => process.exit(1));
}

const machine = machineFacts();
const figures: Figure[] = [];
const runs: { name: string; loadAverage: number; figures: object[] }[] = [];
for (const benchmark of options.picked) {
  console.error(`${benchmark.name}, load average ${loadAverage()}`);
  const measured = await benchmark.run();
  figures.push(...measured);
  runs.push({
    name: benchmark.name,
    loadAverage: loadAverage(),
    figures: measured.map((figure) => ({ ...figure, ratio: ratioOf(figure), met: isMet(figure) })),
  });
}
const json = JSON.stringify({ machine, at: new Date().toISOString(), runs }, null, 2);
console.log(
  `${Object.entries(machine)
    .map((fact) => fact.join(" "))
    .join(", ")}\n`,
);
console.log(markdownTable(figures));
if (options.json) writeFileSync(options.json, `${json}\n`);
else console.log(`\n${json}`);

/** Ends the program if a word of the command line is wrong, or after the usage. */
function optionsOf(words: string[]) {
  try {
    const read = readOptions(words, BENCHMARKS);
    if (!read.isHelp) return read;
    console.log(usageOf(BENCHMARKS));
    process.exit(0);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
