/**
 * Replaces every process of a cluster in the order and with the commands of docs/operate/upgrade.md, while clients
 * write, read and render.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runCommand } from "../scripts/testing/command-line.ts";
import { shellBlocksOf } from "../scripts/testing/guide.ts";
import { startCluster, type TestNatsCluster } from "../scripts/testing/nats-server.ts";
import { ReadinessProxy } from "../scripts/testing/readiness-proxy.ts";
import { type Credentials, RoleProcess } from "../scripts/testing/role-process.ts";
import { TokenLoad } from "../scripts/testing/token-load.ts";
import { until } from "../scripts/testing/until.ts";
import { REPOSITORY } from "../scripts/tools.ts";

const CLIENTS = 6;
/** Much longer than the proxy needs to notice that a gateway leaves, even on a busy machine. */
const LEAVE_SECONDS = 10;

describe("a rolling upgrade", function () {
  this.timeout(2_400_000);
  let folder: string;
  let nats: TestNatsCluster;
  let proxy: ReadinessProxy;
  let load: TokenLoad;
  let printing: PrintLoad;
  const [copiesAreCurrent = "", isHealthy = "", streams = "", ...others] = shellBlocksOf(
    "docs/operate/upgrade.md",
  ).filter((block) => !block.includes("kubectl"));
  const running = new Map<string, RoleProcess>();
  let started = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-rolling-"));
    await chmod(folder, 0o755);
    nats = await startCluster(3);
  });
  after(async () => {
    await load?.stop();
    await printing?.stop().catch(() => {}); // The test reports it.
    await proxy?.[Symbol.asyncDispose]();
    await Promise.all(Array.from(running.values(), (one) => one[Symbol.asyncDispose]()));
    await nats?.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it("of a cluster under load fails no request and loses nothing", async () => {
    expect(copiesAreCurrent).to.include("until trunkline admin doctor streams");
    expect(isHealthy).to.match(/^curl .* http:\/\/127\.0\.0\.1:8787\/healthz\n$/);
    expect(streams).to.equal("trunkline admin streams\n");
    expect(others).to.deep.equal([]);
    const names = ["gateway-0", "gateway-1", "actors-0", "actors-1", "browser-0", "browser-1"];
    await Promise.all(names.map(start));
    const gateways = () => ["gateway-0", "gateway-1"].map((name) => urlOf(name));
    proxy = await ReadinessProxy.start(gateways());
    const credentials = { ...(await firstCredentials()), base_url: `${proxy.url}/v4` };
    load = new TokenLoad(credentials, CLIENTS);
    printing = new PrintLoad(credentials);
    await load.more(50);
    await printing.more(1);

    for (const [index, server] of nats.servers.entries()) {
      await server.restart();
      await page(copiesAreCurrent);
      await load.more(20);
      report(`nats-server ${index}`, load, printing);
    }
    await page(streams);
    for (const name of ["browser-0", "browser-1", "actors-0", "actors-1"]) {
      await replace(name);
      await load.more(20);
      await printing.more(1);
      report(name, load, printing);
    }
    for (const name of ["gateway-0", "gateway-1"]) {
      const before = urlOf(name);
      const old = running.get(name);
      old?.signal("SIGTERM");
      expect(await old?.exit()).to.equal(0);
      proxy.remove(before);
      await start(name);
      proxy.add(urlOf(name));
      await until("the proxy knows it", () => proxy.isReady(urlOf(name)), 120_000);
      await load.more(20);
      report(name, load, printing);
    }
    expect(proxy.broken).to.deep.equal([]);
    expect(load.failures).to.deep.equal([]);
    expect(await printing.stop()).to.deep.equal([]);
    expect(await load.findLost()).to.deep.equal([]);
  });

  async function replace(name: string): Promise<void> {
    const old = running.get(name);
    old?.signal("SIGTERM");
    expect(await old?.exit()).to.equal(0);
    await start(name);
  }

  async function start(name: string): Promise<void> {
    const [role = ""] = name.split("-");
    started += 1;
    const instance = await RoleProcess.start(`${name}-${started}`, folder, {
      TRUNKLINE_ROLES: role,
      TRUNKLINE_NATS_URL: nats.urls.join(","),
      TRUNKLINE_REPLICAS: "3",
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
      TRUNKLINE_LEAVE_SECONDS: String(LEAVE_SECONDS),
    });
    running.set(name, instance);
    const { host } = new URL(instance.url);
    await page(isHealthy.replace("127.0.0.1:8787", host));
    await instance.ready();
  }

  function urlOf(name: string): string {
    const instance = running.get(name);
    if (!instance) throw new Error(`${name} does not run`);
    return instance.url;
  }

  /** Returns the credentials of the first account. One of the two gateways created it. */
  async function firstCredentials(): Promise<Credentials> {
    const [found] = await Promise.all(
      ["gateway-0", "gateway-1"].map((name) =>
        running
          .get(name)
          ?.credentials()
          .catch(() => {}),
      ),
    ).then((all) => all.filter((one) => one !== undefined));
    if (!found) throw new Error("No gateway made an account");
    return found;
  }

  /** Runs a command of the upgrade page, as an operator of this cluster would. */
  async function page(command: string): Promise<void> {
    const program = `trunkline() { '${process.execPath}' '${REPOSITORY}/scripts/trunkline.ts' "$@"; }`;
    const environment = { TRUNKLINE_NATS_URL: nats.urls.join(","), TRUNKLINE_REPLICAS: "3" };
    const { code, stdout, stderr } = await runCommand(
      "sh",
      ["-c", `${program}\n${command}`],
      environment,
    );
    expect(code, `${command}: ${stdout}${stderr}`).to.equal(0);
  }
});

function report(what: string, load: TokenLoad, printing: PrintLoad): void {
  console.log(
    `      ${what}: longest silence ${load.takeGapMs()} ms, ${load.acknowledged} changes, ${printing.count} PDFs, ${load.failures.length} failures`,
  );
}

/** Prints one PDF after the other. */
class PrintLoad {
  count = 0;
  readonly #credentials: Credentials;
  readonly #failures: string[] = [];
  readonly #running: Promise<void>;
  #isStopping = false;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
    this.#running = this.#run();
    this.#running.catch(() => {}); // It rejects where it is awaited.
  }

  async more(count: number): Promise<void> {
    const goal = this.count + count;
    await until("PDFs", () => this.count + this.#failures.length >= goal, 300_000);
  }

  /** Stops printing. Returns descriptions of the requests that failed. */
  async stop(): Promise<string[]> {
    this.#isStopping = true;
    await this.#running;
    return this.#failures;
  }

  async #run(): Promise<void> {
    const { base_url, account_id, api_token } = this.#credentials;
    const address = `${base_url}/accounts/${account_id}/browser-rendering/pdf?cacheTTL=0`;
    while (!this.#isStopping) {
      const answer = await fetch(address, {
        method: "POST",
        headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ html: "<h1>Hello</h1>" }),
      });
      const body = Buffer.from(await answer.arrayBuffer());
      if (answer.ok && body.subarray(0, 5).toString() === "%PDF-") this.count += 1;
      else this.#failures.push(`${answer.status} ${body.toString("utf8", 0, 300)}`);
    }
  }
}
