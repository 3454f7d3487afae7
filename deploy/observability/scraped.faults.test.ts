import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { Person } from "../../gateway/oauth/testing/oauth-world.ts";
import { SHARDS } from "../../schemas/limits.ts";
import { METRICS } from "../../schemas/metrics.ts";
import { AGENT_APP, AGENT_APP_CONFIG } from "../../scripts/testing/agent-app.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { startHttpServer } from "../../scripts/testing/loopback-server.ts";
import { Promcheck } from "../../scripts/testing/promcheck.ts";
import { until } from "../../scripts/testing/until.ts";

const run = promisify(execFile);

describe("metrics of a running platform", function () {
  this.timeout(600_000);
  let platform: AppPlatform;
  before(async () => {
    platform = await AppPlatform.start({ TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8" });
  });
  after(() => platform?.[Symbol.asyncDispose]());

  const scrape = () => platform.instance.metrics();
  /** Waits until the sum of all series that begin with this text is at least `least`. */
  const counts = (series: string, least = 1) =>
    until(
      series,
      async () => {
        const lines = (await scrape()).split("\n").filter((one) => one.startsWith(series));
        return lines.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0) >= least;
      },
      240_000,
    );

  it("follow Prometheus's conventions", async function () {
    const promcheck = await Promcheck.buildOrSkip(this);
    const faults = await promcheck.lint(await scrape());
    expect(faults.filter((line) => line.startsWith("trunkline_"))).to.deep.equal([]);
  });

  it("are all there from the start, and name no account", async () => {
    const text = await scrape();
    for (const name of Object.keys(METRICS)) expect(text).to.include(`# TYPE trunkline_${name} `);
    expect(text).to.not.include(platform.accountId);
  });

  it("count commits, calls and the shards that the host took", async () => {
    await counts('trunkline_commits_total{outcome="stored"}');
    await counts("trunkline_commit_actors_total");
    await counts("trunkline_commit_seconds_count");
    // At least all shards: a host that is slow at its start may lose its lease and take all shards again.
    await counts("trunkline_shard_takeovers_total{", SHARDS);
  });

  it("count sign-ins by their outcome", async () => {
    const person = new Person(platform.url);
    await person.open("/login");
    await person.signIn({ ...platform.credentials.user, password: "a wrong password" });
    await counts('trunkline_logins_total{outcome="wrong"}');
    await person.signIn(platform.credentials.user);
    await counts('trunkline_logins_total{outcome="good"}');
    await counts("trunkline_login_seconds_count", 2);
  });

  it("count fetches and pushes of git", async () => {
    const { account_id: account, api_token: token } = platform.credentials;
    const folder = await mkdtemp(join(tmpdir(), "trunkline-metrics-"));
    try {
      await platform.rest("POST", "/artifacts/namespaces/default/repos", { name: "counted" });
      const remote = platform.url.replace("://", `://x:${token}@`);
      const git = (...parameters: string[]) => run("git", parameters, { cwd: folder });
      await git("init", "-q", "-b", "main");
      const identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
      await git(...identity, "commit", "-q", "--allow-empty", "-m", "one");
      const url = `${remote}/git/${account}/default/counted.git`;
      await git("push", "-q", url, "main");
      await git("clone", "-q", url, "copy");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    await counts('trunkline_git_operations_total{operation="push",outcome="done"}');
    await counts('trunkline_git_operations_total{operation="fetch",outcome="done"}');
    await counts('trunkline_git_operation_seconds_count{operation="push"}');
    await counts("trunkline_git_processes_max", 4);
  });

  it("count pages of crawls", async () => {
    await using site = await startHttpServer((request, response) => {
      const isPage = request.url === "/";
      response.writeHead(isPage ? 200 : 404, { "Content-Type": "text/html" });
      response.end(isPage ? "<title>one</title>" : "");
    });
    const url = `http://${site.address}:${site.port}/`;
    const asked = { url, limit: 1, render: false };
    const started = await platform.rest("POST", "/browser-rendering/crawl", asked);
    expect(started.status, JSON.stringify(started.body)).to.equal(200);
    await counts('trunkline_crawl_pages_total{outcome="fetched"}');
    await counts('trunkline_crawl_page_seconds_count{way="http"}');
  });

  it("count turns and sockets of apps", async () => {
    expect((await platform.deploy("counted", AGENT_APP, AGENT_APP_CONFIG)).status).to.equal(200);
    const watcher = await platform.watch("counted", "/agents/counter/one");
    await counts("trunkline_sockets ");
    await counts('trunkline_socket_upgrades_total{outcome="opened"}');
    await counts('trunkline_app_turns_total{outcome="done"}');
    await counts("trunkline_app_turn_seconds_count");
    watcher.socket.close();
    await until("its end", async () => /^trunkline_sockets 0$/m.test(await scrape()), 240_000);
  });
});
