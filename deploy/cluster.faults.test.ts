import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { LEASE_TTL_MS } from "../schemas/limits.ts";
import { stateBucket, stateSubjects } from "../schemas/subjects.ts";
import { longestLeaseMs } from "../scripts/testing/lease-lengths.ts";
import { startCluster, type TestNatsCluster } from "../scripts/testing/nats-server.ts";
import { type Credentials, RoleProcess } from "../scripts/testing/role-process.ts";
import { standStill } from "../scripts/testing/stand-still.ts";
import { TokenLoad } from "../scripts/testing/token-load.ts";
import { until } from "../scripts/testing/until.ts";

const CLIENTS = 8;
const STATE_STREAM = stateSubjects(stateBucket(0)).stream;
/**
 * Maximum time until hosts answer after every stream has a leader again: they may have to take their leases again, and
 * the requests that were in progress are repeated.
 */
const ANSWER_MS_MAX = 15_000;
/** Maximum time until another host has taken over. The usual lease of a dead host expires after 2 s. */
const TAKEOVER_MS_MAX = 5_000;
/**
 * How many times the longest silence without a fault is added to these limits. This silence shows the present speed of
 * the machine, and a takeover needs about as many requests in a row.
 */
const SILENCE_TIMES = 10;
/** Limit of waits for servers and processes on a busy machine. */
const WAIT_MS_MAX = 240_000;

describe("cluster", function () {
  this.timeout(900_000);
  let folder: string;
  let nats: TestNatsCluster;
  let bus: Bus;
  let gateways: RoleProcess[] = [];
  let actors: RoleProcess[] = [];
  let browsers: RoleProcess[] = [];
  let found: Credentials[];
  let credentials: Credentials;
  let load: TokenLoad;
  const all = () => [...gateways, ...actors, ...browsers];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-cluster-"));
    // If root runs the tests, browsers run as another user, and their profiles are in this folder.
    await chmod(folder, 0o755);
    nats = await startCluster(3);
    bus = await Bus.connect({ url: nats.urls.join(","), name: "test" });
    const startedAt = performance.now();
    // Starts all processes at the same time, because the start order of machines is not defined.
    [gateways, actors, browsers] = await Promise.all([
      Promise.all([start("gateway-0", "gateway"), start("gateway-1", "gateway")]),
      Promise.all([start("actors-0", "actors"), start("actors-1", "actors")]),
      Promise.all([start("browser-0", "browser")]),
    ]);
    await Promise.all(all().map((instance) => instance.ready()));
    print("five processes ready after", performance.now() - startedAt);
    const made = await Promise.allSettled(gateways.map((gateway) => gateway.credentials()));
    found = made.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const [first] = found;
    if (!first) throw new Error("No gateway made an account");
    credentials = first;
    load = new TokenLoad(credentials, CLIENTS);
  });

  after(async () => {
    await Promise.all(all().map((instance) => instance[Symbol.asyncDispose]()));
    await load.stop();
    await bus.close();
    await nats.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it("firstStart() of gateways that start at once makes one account", async () => {
    expect(found).to.have.length(1);
    const listed = await get("/accounts");
    expect(listed.result).to.have.length(1);
    expect(listed.result).to.have.nested.property("0.id", credentials.account_id);
  });

  it("prints a PDF, and accepts tokens at every gateway", async () => {
    const startedAt = performance.now();
    expect((await pdf()).toString("latin1", 0, 500)).to.match(/^%PDF-/);
    print("first PDF after", performance.now() - startedAt);
    await load.more(50);
    expect(load.failures).to.deep.equal([]);
    load.takeGapMs();
  });

  it("loses no acknowledged change and keeps responding when the leader of the state is killed", async () => {
    const { cluster } = await bus.jetstream.streams.info(STATE_STREAM);
    const leader = nats.servers[Number(cluster?.leader?.at(-1))];
    if (!leader) throw new Error(`No server leads ${STATE_STREAM}`);
    const streams = await replicatedStreams();
    const undisturbed = await undisturbedMs();
    const still = standStill();
    await leader.kill();
    // nats-server notices the loss of a leader after 4 to 9 s. An election takes as long again if two servers are
    // candidates at the same time, and longer on a busy machine.
    const elected = electionMs(streams, cluster?.leader ?? "");
    await load.more(50);
    const gap = load.takeGapMs();
    const electedMs = await elected;
    print("state's leader killed: longest silence", gap);
    print("streams without a leader for", electedMs);
    expect(gap - still()).to.be.below(electedMs + ANSWER_MS_MAX + SILENCE_TIMES * undisturbed);
    const isPrinted = async () => /^%PDF-/.test((await pdf()).toString("latin1", 0, 500));
    await until("a PDF is printed", isPrinted, WAIT_MS_MAX);
    await leader.start();
    const isCurrent = async () => {
      const { cluster } = await bus.jetstream.streams.info(STATE_STREAM);
      return cluster?.replicas?.every(({ current, offline }) => current && !offline);
    };
    await until("all replicas are current", () => isCurrent().catch(() => false), WAIT_MS_MAX);
  });

  it("another process takes the shards of a killed process with actors", async () => {
    const undisturbed = await undisturbedMs();
    actors[0]?.signal("SIGKILL");
    const still = standStill();
    // After slow renewals, a lease is longer than usual.
    const longerMs = (await longestLeaseMs(bus)) - LEASE_TTL_MS;
    await load.more(200);
    const gap = load.takeGapMs();
    print("actors killed: longest silence", gap);
    const limit = TAKEOVER_MS_MAX + longerMs + SILENCE_TIMES * undisturbed;
    expect(gap - still()).to.be.below(limit);
  });

  it("a second process with browsers joins and takes tasks", async () => {
    const second = await start("browser-1", "browser");
    browsers.push(second);
    await second.ready();
    const tasks = await until(
      "both have taken tasks",
      async () => {
        for (const page of await Promise.all(Array.from({ length: 24 }, () => pdf()))) {
          expect(page.subarray(0, 5).toString()).to.equal("%PDF-");
        }
        const taken = browsers.map(async (browser) => tasksOf(await browser.metrics()));
        const counts = await Promise.all(taken);
        return Math.min(...counts) > 0 && counts;
      },
      WAIT_MS_MAX,
    );
    console.log(`      tasks of each browser process: ${tasks.join(" and ")}`);
  });

  it("still has every acknowledged change afterwards", async () => {
    expect(await load.findLost()).to.deep.equal([]);
    console.log(`      ${load.acknowledged} changes acknowledged, ${load.failures.length} refused`);
  });

  it("SIGTERM ends every process with success", async () => {
    const startedAt = performance.now();
    const left = all().filter((instance) => instance !== actors[0]);
    for (const instance of left) instance.signal("SIGTERM");
    expect(await Promise.all(left.map((instance) => instance.exit()))).to.deep.equal(
      left.map(() => 0),
    );
    print("all stopped after", performance.now() - startedAt);
    // The child processes of a browser exit shortly after the browser.
    const haveEnded = async () => (await processesIn(folder)).length === 0;
    await until("all have ended", haveEnded, WAIT_MS_MAX);
  });

  function start(name: string, roles: string): Promise<RoleProcess> {
    return RoleProcess.start(name, folder, {
      TRUNKLINE_ROLES: roles,
      TRUNKLINE_NATS_URL: nats.urls.join(","),
      TRUNKLINE_REPLICAS: "3",
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
    });
  }

  /** Measures the longest silence without a fault, because it depends on the present load of the machine. */
  async function undisturbedMs(): Promise<number> {
    await load.more(20);
    load.takeGapMs();
    await load.more(100);
    return load.takeGapMs();
  }

  async function replicatedStreams(): Promise<string[]> {
    const infos = await Array.fromAsync(bus.jetstream.streams.list());
    return infos.flatMap(({ config }) => (config.num_replicas > 1 ? [config.name] : []));
  }

  /** Returns the time until each of these streams has another leader than the killed server. */
  async function electionMs(streams: readonly string[], killed: string): Promise<number> {
    const startedAt = performance.now();
    const leaderOf = async (stream: string) =>
      (await bus.jetstream.streams.info(stream)).cluster?.leader;
    const areLed = async () => {
      // A stream without a leader does not answer.
      const asked = streams.map((stream) => leaderOf(stream).catch(() => undefined));
      const leaders = await Promise.all(asked);
      return leaders.every((leader) => leader !== undefined && leader !== killed);
    };
    await until("every stream has a leader", areLed, WAIT_MS_MAX);
    return performance.now() - startedAt;
  }

  async function get(path: string): Promise<{ result: unknown }> {
    const headers = { Authorization: `Bearer ${credentials.api_token}` };
    const response = await fetch(`${credentials.base_url}${path}`, { headers });
    return (await response.json()) as { result: unknown };
  }

  async function pdf(): Promise<Buffer> {
    const path = `/accounts/${credentials.account_id}/browser-rendering/pdf?cacheTTL=0`;
    const response = await fetch(`${credentials.base_url}${path}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${credentials.api_token}`,
        "Content-Type": "application/json",
      },
      body: JSON.stringify({ html: "<h1>Hello</h1>" }),
    });
    return Buffer.from(await response.arrayBuffer());
  }
});

const print = (what: string, ms: number) => console.log(`      ${what} ${Math.round(ms)} ms`);

/** Returns the number of tasks that a process with the role `browser` has handled, read from its metrics. */
function tasksOf(metrics: string): number {
  const counts = metrics.matchAll(/^trunkline_browser_messages_total\{.*\} (\d+)$/gm);
  return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0);
}

/**
 * Returns the command lines of the processes that were started with this folder in their parameters or environment.
 */
async function processesIn(path: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(pid)) continue;
    const read = (list: string) => readFile(`/proc/${pid}/${list}`, "utf8").catch(() => "");
    const command = await read("cmdline");
    if ((command + (await read("environ"))).includes(path)) found.push(command);
  }
  return found;
}
