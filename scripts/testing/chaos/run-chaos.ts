/**
 * Runs one chaos run: starts a cluster and its loads, injects faults by a seed, ends all faults, and checks the
 * invariants.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { SeededRandom } from "../seeded-random.ts";
import { ChaosClient } from "./chaos-client.ts";
import { ChaosCluster } from "./chaos-cluster.ts";
import type { ChaosLoad } from "./chaos-load.ts";
import { CrawlLoad } from "./crawls.ts";
import { FaultSchedule } from "./fault-schedule.ts";
import { Growth } from "./growth.ts";
import { PdfLoad } from "./pdfs.ts";
import { PushLoad } from "./pushes.ts";
import { oauthClients, RegisterLoad, repositories } from "./registers.ts";
import { apiTokens, repositoryTokens, TokenChurn } from "./token-churn.ts";
import { WebhookLoad } from "./webhooks.ts";

export interface ChaosOptions {
  ms: number;
  seed: number;
  /** Receives each line of the report as soon as the line is known. */
  print: (line: string) => void;
}

/** Time for which loads run without faults, before the first fault and after the last one. */
const UNDISTURBED_MS = 5_000;
const PROBLEMS_OF_EACH_MAX = 10;
const LOG_LINES_MAX = 60;

/** Returns descriptions of the violations. */
export async function runChaos({ ms, seed, print }: ChaosOptions): Promise<string[]> {
  const random = new SeededRandom(seed);
  const since = clock.monotonic();
  await using cluster = await ChaosCluster.start();
  print(`9 processes are ready after ${inSeconds(clock.monotonic() - since)} s`);
  const schedule = new FaultSchedule(cluster, random.fork(), print);
  const client = new ChaosClient(cluster, schedule.faults, random.fork());
  const work = join(cluster.folder, "git");
  await mkdir(work);
  const crawls = new CrawlLoad(client);
  const pushes = new PushLoad(client, random.fork(), work);
  const webhooks = new WebhookLoad(client, random.fork());
  const loads: ChaosLoad[] = [
    new RegisterLoad(client, random.fork(), repositories(client)),
    new RegisterLoad(client, random.fork(), oauthClients(client)),
    new TokenChurn(client, random.fork(), apiTokens(client)),
    new TokenChurn(client, random.fork(), repositoryTokens(client)),
    pushes,
    webhooks,
    crawls,
    new PdfLoad(client, random.fork()),
  ];
  try {
    await Promise.all(loads.map((load) => load.start()));
    using growth = await Growth.start(cluster);
    await clock.wait(UNDISTURBED_MS);
    await schedule.run(clock.monotonic() + ms);
    await clock.wait(UNDISTURBED_MS);
    print(`${schedule.faults.length} faults: ${shownCounts(schedule.counts)}`);
    await Promise.all(loads.map((load) => load.stop()));
    const problems = await findProblems(loads, schedule, growth, print);
    print(`${pushes.clones} clones, ${webhooks.reopened} sockets opened again`);
    for (const line of await growth.report()) print(line);
    if (problems.length > 0)
      for (const line of cluster.errorLines.slice(-LOG_LINES_MAX)) print(line);
    return problems;
  } catch (error) {
    for (const line of cluster.errorLines.slice(-LOG_LINES_MAX)) print(line);
    throw error;
  } finally {
    webhooks.dispose();
    await crawls.dispose();
  }
}

async function findProblems(
  loads: readonly ChaosLoad[],
  schedule: FaultSchedule,
  growth: Growth,
  print: (line: string) => void,
): Promise<string[]> {
  const problems = [...schedule.problems];
  for (const load of loads) {
    const found = await load.findProblems().catch((error: Error) => [error.message]);
    const { acknowledged, unknown, medianMs, longestMs } = load.tally;
    const times = longestMs > 0 ? `, median ${medianMs} ms, longest ${longestMs} ms` : "";
    print(`${load.name}: ${acknowledged} acknowledged, ${unknown} without an answer${times}`);
    if (acknowledged === 0) found.push("nothing was acknowledged");
    problems.push(...found.slice(0, PROBLEMS_OF_EACH_MAX).map((text) => `${load.name}: ${text}`));
    if (found.length > PROBLEMS_OF_EACH_MAX) problems.push(`${load.name}: ${found.length} in all`);
  }
  return [...problems, ...(await growth.findProblems())];
}

const shownCounts = (counts: ReadonlyMap<string, number>) =>
  Array.from(counts, ([what, count]) => `${count} × ${what}`).join(", ");

const inSeconds = (ms: number) => (ms / 1_000).toFixed(1);
