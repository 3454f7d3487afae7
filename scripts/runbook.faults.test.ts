import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { declareStreams } from "../deploy/streams.ts";
import { FIRST_LAYOUT } from "../schemas/data-layout.ts";
import { LANE_TASKS_MAX } from "../schemas/limits.ts";
import { addressOf, deadSubject, STREAMS } from "../schemas/subjects.ts";
import { AGENT_APP, AGENT_APP_CONFIG } from "./testing/agent-app.ts";
import { AppPlatform } from "./testing/app-platform.ts";
import { runCommand } from "./testing/command-line.ts";
import { natsCliOrSkip } from "./testing/nats-cli.ts";
import { startCluster } from "./testing/nats-server.ts";
import { connectPatiently } from "./testing/patient-bus.ts";
import { until } from "./testing/until.ts";
import { REPOSITORY } from "./tools.ts";

/** Runs the commands of the runbook exactly as written, while the problem that their section describes exists. */
describe("commands of the runbook", function () {
  this.timeout(240_000);
  let runbook: string;
  let tools: string;
  let platform: AppPlatform;
  let bus: Bus;
  let environment: NodeJS.ProcessEnv;
  before(async function () {
    const cli = await natsCliOrSkip(this);
    runbook = await readFile(join(REPOSITORY, "docs/operate/runbook.md"), "utf8");
    tools = await mkdtemp(join(tmpdir(), "trunkline-runbook-"));
    await symlink(cli, join(tools, "nats"));
    // There is no role `browser`, so nobody handles tasks of rendering.
    platform = await AppPlatform.start({ TRUNKLINE_ROLES: "gateway,actors" });
    const { dataDir } = platform.instance;
    const url = (await readFile(join(dataDir, "nats.url"), "utf8")).trim();
    bus = await connectPatiently(url);
    environment = environmentFor(url);
    environment.TRUNKLINE_DATA = dataDir;
    environment.PLATFORM_URL = platform.url;
    environment.METRICS_TOKEN = "opens-metrics-in-tests";
  });
  after(async () => {
    await bus?.close();
    await platform?.[Symbol.asyncDispose]();
    if (tools !== undefined) await rm(tools, { recursive: true });
  });

  const environmentFor = (natsUrl: string): NodeJS.ProcessEnv => ({
    PATH: `${tools}:${join(REPOSITORY, "scripts")}:${process.env.PATH}`,
    NATS_URL: natsUrl,
  });

  /** Returns the commands of a section, without the comments after `#`. */
  function commandsOf(title: string): string[] {
    const [, section = ""] = runbook.split(`\n## ${title}\n`);
    const [text = ""] = section.split("\n## ");
    const blocks = [...text.matchAll(/```console\n(.*?)```/gs)].map(([, block = ""]) => block);
    const commands = blocks.flatMap((block) =>
      [...block.matchAll(/^\$ (.*)$/gm)].map(([, line = ""]) => line.replace(/ {2,}# .*$/, "")),
    );
    expect(commands, title).to.not.deep.equal([]);
    return commands;
  }

  /** Runs a command in a shell, in the repository's folder. */
  function run(command: string, more: NodeJS.ProcessEnv = {}) {
    const script = `cd '${REPOSITORY}' && set -o pipefail && ${command}`;
    return runCommand("bash", ["-c", script], { ...environment, ...more });
  }

  /** Runs the commands of a section one after the other. Returns the output of each. */
  async function runAll(title: string, more: NodeJS.ProcessEnv = {}): Promise<string[]> {
    const printed: string[] = [];
    for (const command of commandsOf(title)) {
      const { code, stdout, stderr } = await run(command, more);
      expect(code, `${command}: ${stdout}${stderr}`).to.equal(0);
      printed.push(stdout);
    }
    return printed;
  }

  const publish = (subject: string, body: unknown) =>
    bus.jetstream.jetstream().publish(subject, JSON.stringify(body));

  it("a full lane", async () => {
    const task = "task.render.interactive";
    const sent = Array.from({ length: LANE_TASKS_MAX }, (_, id) => publish(task, { id: `t${id}` }));
    await Promise.all(sent);
    const [tasks, services] = await runAll("A lane is full");
    expect(tasks).to.match(/render\.interactive +1000 +0 .* full\n/);
    expect(services).to.include("trunkline-gateway").and.not.include("trunkline-browser");
    await bus.jetstream.streams.purge(STREAMS.tasks, { filter: task });
  });

  it("a dead letter", async () => {
    const letter = { message: "vanish", error: "refused", tries: 1, buriedAt: Date.now() };
    const subject = deadSubject(addressOf("account", "lost"));
    const numbers: number[] = [];
    for (const command of commandsOf("A dead letter appears")) {
      const { seq } = await publish(subject, letter);
      numbers.push(seq);
      const { code, stdout } = await run(command.replace(/ 1$/, ` ${seq}`));
      expect(code, command).to.equal(0);
      expect(stdout).to.include("vanish");
    }
    expect(numbers).to.have.length(4);
  });

  it("a full disk", async () => {
    const [disk, health, streams] = await runAll("The disk is full");
    expect(disk).to.match(/^good +disk/m);
    expect(JSON.parse(health ?? "")).to.deep.include({ success: true });
    expect(streams).to.include("KV_state-0");
  });

  it("leaking sockets", async () => {
    expect((await platform.deploy("leaks", AGENT_APP, AGENT_APP_CONFIG)).status).to.equal(200);
    const opened = await Promise.all(
      Array.from({ length: 12 }, () => platform.watch("leaks", "/agents/counter/one")),
    );
    const [metrics, clients] = await runAll("Sockets leak");
    expect(metrics).to.match(/^trunkline_sockets 12$/m);
    const [, count] = /^ *(\d+) .*127\.0\.0\.1/m.exec(clients ?? "") ?? [];
    expect(Number(count)).to.be.at.least(12);
    for (const { socket } of opened) socket.close();
  });

  it("a runaway app", async () => {
    expect((await platform.deploy("eats", AGENT_APP, AGENT_APP_CONFIG)).status).to.equal(200);
    const asked = await platform.ask("eats", "/agents/counter/one/eat");
    expect(asked.status).to.be.at.least(500);
    await until("the end is counted", async () =>
      /ended_total\{reason="bound"\} [1-9]/.test(await platform.instance.metrics()),
    );
    const [metrics, apps, line] = await runAll("An app runs away");
    expect(metrics).to.match(/^trunkline_app_processes_ended_total\{reason="bound"\} [1-9]/m);
    expect(apps).to.include(`applog.${platform.accountId}.eats`);
    expect(line).to.include("The process of the app has ended");
  });

  it("a lost server", async () => {
    await using cluster = await startCluster(3, "", () => {});
    const url = cluster.urls.join(",");
    const own = await Bus.connect({ url, name: "test" });
    await declareStreams(own.jetstream, { replicas: 3, layout: FIRST_LAYOUT, tasks: [] });
    await own.close();
    await cluster.servers[2]?.kill();
    const more = { ...environmentFor(url), TRUNKLINE_NATS_URL: url, TRUNKLINE_REPLICAS: "3" };
    const [doctor = "", ...others] = commandsOf("A server of the bus is lost");
    await until(
      "the missing copies",
      async () => {
        const { stdout } = await run(doctor, more);
        return /stream MAIL +found 2 of 3 copies current/.test(stdout);
      },
      120_000,
    );
    for (const command of others) {
      const { code, stdout, stderr } = await run(command, more);
      expect(code, `${command}: ${stdout}${stderr}`).to.equal(0);
    }
  });
});
