/**
 * Measures the platform against its references: `npm run bench -- [start of a name]… [--json file] [--profile folder]
 * [--servers n]`.
 * A figure that misses its target fails nothing; only what breaks does.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
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
  appWebhooks,
  appBroadcasts,
  appCold,
  appSockets,
  backup,
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "string" }, profile: { type: "string" }, servers: { type: "string" } },
});
// Benchmarks of the runtime then run on a cluster.
if (values.servers) process.env.TRUNKLINE_BENCH_SERVERS = values.servers;
// Every process of a benchmark then leaves a CPU profile there.
if (values.profile) process.env.TRUNKLINE_BENCH_PROFILE = values.profile;

// The listeners for `exit` end the processes that were started.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => process.exit(1));
}

const machine = machineFacts();
const figures: Figure[] = [];
const runs: { name: string; loadAverage: number; figures: object[] }[] = [];
for (const benchmark of picked()) {
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
if (values.json) writeFileSync(values.json, `${json}\n`);
else console.log(`\n${json}`);

function picked(): readonly Benchmark[] {
  if (positionals.length === 0) return BENCHMARKS;
  const found = BENCHMARKS.filter(({ name }) =>
    positionals.some((start) => name.startsWith(start)),
  );
  const names = BENCHMARKS.map(({ name }) => name).join(", ");
  if (found.length === 0) throw new Error(`Cannot pick benchmarks: there are ${names}`);
  return found;
}
