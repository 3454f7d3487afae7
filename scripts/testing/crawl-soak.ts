/**
 * Injects random faults for minutes while crawls walk a site, then checks each crawl:
 * `node_modules/.bin/node scripts/testing/crawl-soak.ts --minutes N --seed S [--render]`.
 */
import { parseArgs } from "node:util";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { LEASE_TTL_MS } from "../../schemas/limits.ts";
import { crawlFaults, requestsMissing } from "./crawl-check.ts";
import { CrawlScene } from "./crawl-scene.ts";
import { CrawlSite } from "./crawl-site.ts";
import { orRefuse, readRunOptions } from "./run-options.ts";
import { SeededRandom } from "./seeded-random.ts";

const QUIET_MS_MAX = 3_000;
const JOB_MS_MAX = 600_000;
/** Number of faults in each round. A round is one crawl of all hosts. */
const FAULTS_PER_ROUND = 8;

const known = {
  minutes: { type: "string", default: "5" },
  seed: { type: "string" },
  render: { type: "boolean", default: false },
} as const;
const { values } = orRefuse(() => parseArgs({ options: known }));
const { minutes, seed } = readRunOptions(values);
const endAt = clock.monotonic() + minutes * 60_000;
const random = new SeededRandom(seed);
console.log(`--seed ${seed} repeats the choices of this run`);
// Disables the warning about many listeners: the bus and each restarted process add a listener for our exit.
process.setMaxListeners(0);

while (clock.monotonic() < endAt && process.exitCode === undefined) {
  await using site = await CrawlSite.start([
    { address: "127.0.22.1", pages: 60, sitemap: true, crawlDelay: 0.4, answerMs: 20 },
    { address: "127.0.22.2", pages: 60, sitemap: false },
    { address: "127.0.22.3", pages: 60, sitemap: true, crawlDelay: 0.1 },
    { address: "127.0.22.4", pages: 200, sitemap: true, crawlDelay: 0, answerMs: 200 },
  ]);
  const options = { seed: random.integer(0, 2 ** 32 - 1), actors: 2, browsers: 2 };
  await using scene = await CrawlScene.start(options);
  const name = "soak";
  const id = await scene.startCrawl({
    url: `${site.origins[0]}/`,
    render: values.render,
    limit: 1_000,
    maxAge: 0,
    options: { includeExternalLinks: true },
    setExtraHTTPHeaders: { "x-job": name },
  });
  const faults = [
    () => scene.killOne("browser"),
    () => scene.killOne("actors"),
    () => scene.killOne("gateway"),
    () => scene.killAll(),
    () => scene.killBus(scene.random.integer(0, 1.5 * LEASE_TTL_MS)),
    () => scene.cutOff("browser", scene.random.integer(0, 2 * LEASE_TTL_MS), "cut"),
    () => scene.cutOff("actors", scene.random.integer(0, 2 * LEASE_TTL_MS), "cut"),
    () => scene.cutOff("browser", scene.random.integer(0, 3 * LEASE_TTL_MS), "stall"),
    () => scene.cutOff("actors", scene.random.integer(0, 2 * LEASE_TTL_MS), "stall"),
  ];
  const problems = await afterFaults().catch((error: Error) => [error.message]);
  const what = problems.length === 0 ? "all is well" : problems.join("\n");
  console.log(`${site.requests.length} requests, ${what}`);
  if (problems.length > 0) {
    for (const line of scene.errorLines) console.log(line);
    process.exitCode = 1;
  }

  async function afterFaults(): Promise<string[]> {
    for (let count = 0; count < FAULTS_PER_ROUND; count++) {
      await clock.wait(scene.random.integer(0, QUIET_MS_MAX));
      await scene.random.pick(faults)();
    }
    const { status, messages } = await scene.ended(id, JOB_MS_MAX);
    const job = { id, name, hosts: site.hosts.map((_, host) => host) };
    return [
      ...(status === "completed" ? [] : [`The crawl is ${status}: ${messages.join("; ")}`]),
      ...(await crawlFaults(scene, site, job)),
      ...requestsMissing(site, job).map((url) => `${url} was not asked for`),
      ...site.paceFaults(),
    ];
  }
}
