/**
 * Prints the computed costs of a platform with 1,000 hosts: `node_modules/.bin/node scripts/model/main.ts [hosts]
 * [changes a second]`.
 */
import { SHARDS, SHARDS_MAX } from "../../schemas/limits.ts";
import { type Costs, type Findings, simulate } from "./simulate.ts";

/** From docs/benchmarks.md. */
const COSTS: Costs = {
  changesPerStream: 20_800,
  mailPerStream: 44_900,
  tasksPerStream: 3_080,
  agentCommitsPerStream: 3_460,
  messagesPerHost: 20,
  messagesPerShard: 0.3,
  coresPerHost: 0.0045,
  coresPerShard: 0.000014,
};
const HOSTS = 1_000;
const CHANGES = 1_000_000;

const [hosts = HOSTS, changesPerSecond = CHANGES, ...more] = process.argv.slice(2).map(Number);
const isCount = (value: number) => Number.isSafeInteger(value) && value > 0;
if (more.length > 0 || !isCount(hosts) || !isCount(changesPerSecond)) {
  console.error("Cannot compute: hosts and changes a second must be whole numbers above 0");
  process.exit(2);
}
/** The changes that send mail to another host, start a task, or commit an agent's database. */
const shares = {
  mailPerSecond: changesPerSecond * 0.2,
  tasksPerSecond: changesPerSecond * 0.01,
  agentCommitsPerSecond: changesPerSecond * 0.05,
};
/** 10 GB of packs and 2 GB of agents for each host, and at most 2 TB of a store on a server. */
const stored = { packBytes: hosts * 10e9, agentBytes: hosts * 2e9, serverBytes: 2e12 };
const rack = { hostsPerRack: Math.max(1, Math.round(hosts / 25)), actorsPerHost: 100_000 };
const columns = [SHARDS, 512, SHARDS_MAX].map((shards) => ({
  shards,
  found: simulate({ ...rack, ...shares, ...stored, hosts, shards, changesPerSecond }, COSTS),
}));

const whole = (value: number) => Math.round(value).toLocaleString("en");
const rows: [string, (found: Findings) => string][] = [
  ["busiest host, in fair shares", ({ busiest }) => busiest.toFixed(1)],
  ["hosts without a shard", ({ idleHosts }) => whole(idleHosts)],
  ["idle: messages a second", ({ idleMessagesPerSecond: count }) => whole(count)],
  ["idle, if each host watched each lease", ({ messagesIfAllWatch: count }) => whole(count)],
  ["idle: cores of hosts and servers", ({ idleCores }) => idleCores.toFixed(1)],
  ["a host joins: choosing, ms", ({ joinMs }) => joinMs.toFixed(1)],
  [`a rack of ${rack.hostsPerRack} dies: choosing, ms`, ({ rackMs }) => rackMs.toFixed(1)],
  ["shards that move", (found) => whole(found.rack.shards)],
  ["actors that move", (found) => whole(found.rack.actors)],
  ["dead hosts in a row, at most", (found) => whole(found.rack.longestRun)],
  ["writes of epochs", (found) => whole(found.rack.epochWrites)],
  ["epochs to all hosts, messages", (found) => whole(found.rack.epochMessages)],
  ["shards of the busiest taker", (found) => whole(found.rack.mostTaken)],
  ["state streams for the changes", ({ stateStreams }) => whole(stateStreams)],
  ["streams of mail", ({ mailStreams }) => whole(mailStreams)],
  ["streams of tasks", ({ taskStreams }) => whole(taskStreams)],
  ["streams of agents, by rate or size", ({ agentStreams }) => whole(agentStreams)],
  ["streams of packs, by size", ({ packStreams }) => whole(packStreams)],
];

console.log(`${whole(hosts)} hosts, ${whole(changesPerSecond)} changes a second\n`);
console.log(`| | ${columns.map(({ shards }) => `${whole(shards)} shards`).join(" | ")} |`);
console.log(`| --- |${" --- |".repeat(columns.length)}`);
for (const [name, of] of rows) {
  console.log(`| ${name} | ${columns.map(({ found }) => of(found)).join(" | ")} |`);
}
