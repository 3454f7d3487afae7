/**
 * Follows docs/operate like a new operator. The commands of install.md start a cluster, which then loses a server, is
 * backed up, and is restored.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { freePort } from "../scripts/free-port.ts";
import { ChildProgram } from "../scripts/testing/child-program.ts";
import { runCommand } from "../scripts/testing/command-line.ts";
import { shellBlocksOf } from "../scripts/testing/guide.ts";
import type { Credentials } from "../scripts/testing/role-process.ts";
import { until } from "../scripts/testing/until.ts";
import { findNatsServer, REPOSITORY } from "../scripts/tools.ts";
import { CLUSTER_READY_MS } from "./streams.ts";

/** Time limit for the start of a cluster. On a busy machine, its servers elect their leaders after minutes. */
const START_MS_MAX = 400_000;
const SERVERS = ["n1", "n2", "n3"];
const ROLES = ["gateway", "actors", "browser"];
const KEY = Buffer.alloc(32, 7).toString("base64");

describe("docs/operate", function () {
  this.timeout(2_400_000);
  const [, bus = "", roles = "", look = ""] = shellBlocksOf("docs/operate/install.md");
  const [users = "", certificates = "", secureServer = "", secureRole = "", secureLook = ""] =
    shellBlocksOf("docs/operate/security.md");
  const [, variables = ""] = shellBlocksOf("docs/operate/runbook.md");
  const backup = adminCommandOf("docs/operate/backup.md", / admin backup \S+$/);
  const verifies = adminCommandOf("docs/operate/backup.md", / admin backup \S+ --verify$/);
  const restore = adminCommandOf("docs/operate/backup.md", / admin restore \S+$/);
  /** The settings of all processes. */
  const settings = textBefore(roles, "TRUNKLINE_ROLES=");
  const programs = new Map<string, ChildProgram>();
  const ports = new Map<string, number>();
  const tokens: string[] = [];
  let credentials: Credentials;
  let folder: string;
  let path: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-install-"));
    await chmod(folder, 0o755);
    await writeFile(join(folder, "secrets-key"), KEY);
    await writeFile(join(folder, "metrics-token"), "m".repeat(48));
    await mkdir(join(folder, "bin"));
    await symlink(findNatsServer(), join(folder, "bin/nats-server"));
    // An `npx` that runs the program of this clone instead of the published package.
    path = `${join(folder, "bin")}:${join(REPOSITORY, "scripts")}:${process.env.PATH}`;
    const addresses = SERVERS.flatMap((name) => [`${name}:4222`, `${name}:6222`, `${name}:8222`]);
    for (const address of [...addresses, "8787", "8788", "8789"]) {
      ports.set(address, await freePort());
    }
  });
  after(async () => {
    await Promise.all([...programs.keys()].map((name) => stop(name, "SIGKILL")));
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  it("install.md starts a cluster that survives a server", async () => {
    for (const name of SERVERS) startServer(name);
    for (const role of ROLES) startRole(role, "");
    await healthy();
    const file = join(folder, "gateway/credentials.json");
    credentials = JSON.parse(await readFile(file, "utf8"));
    tokens.push(await makeToken());
    // A host that stood still for longer than its lease has no shards for a moment.
    const isGood = async () => {
      const { stdout } = await shell(settings + look);
      return stdout.includes("64 of 64 shards have an owner") && /good +streams/.test(stdout);
    };
    await until("all shards have an owner, and the streams are good", isGood, START_MS_MAX);

    await stop("n2", "SIGKILL");
    tokens.push(await makeToken());
    startServer("n2");
    const isWhole = async () =>
      (await shell(`${settings}trunkline admin doctor streams`)).code === 0;
    await until("all copies are current", isWhole, START_MS_MAX);
  });

  it("security.md gives it TLS and a user for each role, and it keeps its data", async () => {
    await run(users);
    await run(certificates);
    await stopAll();
    for (const name of SERVERS) startServer(name, secureServer);
    for (const role of ROLES) startRole(role, secureSettings(role));
    await healthy();
    // The copies of the streams on the servers that started last may still catch up.
    await eventually(settings + secureSettings("browser") + secureLook);
    await expectTokens();
    const asBrowser = settings + secureSettings("browser");
    const refused = await shell(`${asBrowser}trunkline admin shards`);
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.match(/this user may not .*; use that of admin\.nk/);
  });

  it("backup.md backs it up twice, and restores it onto empty servers", async () => {
    await run(variables + backup);
    tokens.push(await makeToken());
    await run(variables + backup);
    await stopAll();
    await run(verifies);
    for (const name of SERVERS) {
      await rm(join(folder, name), { recursive: true });
      startServer(name, secureServer);
    }
    // The servers may still elect their leaders. A restore that fails removes its streams, and the same command
    // begins anew.
    await eventually(variables + restore);
    for (const role of ROLES) startRole(role, secureSettings(role));
    await healthy();
    await expectTokens();
    await eventually(`${variables}trunkline admin doctor bus streams`);
  });

  /** Returns the settings of security.md for a process of this role. */
  function secureSettings(role: string): string {
    return textBefore(secureRole, "TRUNKLINE_ROLES=").replace("browser.nk", `${role}.nk`);
  }

  /** Replaces the addresses in a command of the page with the addresses of this test. */
  function local(command: string): string {
    return command
      .replace(/\bn[123]:\d{4}\b/g, (address) => `127.0.0.1:${ports.get(address)}`)
      .replace(/TRUNKLINE_PORT=(878\d)/g, (_, port: string) => `TRUNKLINE_PORT=${ports.get(port)}`)
      .replaceAll("DNS:n", "IP:127.0.0.1,DNS:n")
      .replaceAll("node_modules/trunkline/", `${REPOSITORY}/`)
      .replaceAll("/var/backups/trunkline", join(folder, "backups"));
  }

  async function stop(name: string, signal: NodeJS.Signals): Promise<void> {
    const program = programs.get(name);
    if (!program) throw new Error(`${name} does not run`);
    programs.delete(name);
    end(program, signal);
    await program.exit();
    await program[Symbol.asyncDispose]();
  }

  /** Stops the roles first: without a bus, their stop would wait for the bus. */
  async function stopAll(): Promise<void> {
    await Promise.all(ROLES.map((role) => stop(role, "SIGTERM")));
    await Promise.all(SERVERS.map((name) => stop(name, "SIGTERM")));
  }

  /**
   * Starts a server as install.md does. With `commands`, runs these instead of the last line of the page's command.
   */
  function startServer(name: string, commands?: string): void {
    const plain = "nats-server -c";
    const command = (commands === undefined ? bus : textBefore(bus, plain) + commands)
      .replace("NAME=n1", `NAME=${name}`)
      .replace("LISTEN=n1:4222", `LISTEN=${name}:4222`)
      .replace("LISTEN=n1:6222", `LISTEN=${name}:6222`)
      .replace("127.0.0.1:8222", `127.0.0.1:${ports.get(`${name}:8222`)}`)
      .replace("/var/lib/trunkline-bus", join(folder, name));
    start(name, command);
  }

  function startRole(role: string, more: string): void {
    const line = roles.split("\n").find((one) => one.includes(`TRUNKLINE_ROLES=${role} `));
    start(role, `${settings}${more}export TRUNKLINE_PORT=8787\n${line}`);
  }

  function start(name: string, command: string): void {
    const options = { cwd: folder, detached: true };
    const program = new ChildProgram(["sh", "-c", local(command)], { PATH: path }, options);
    programs.set(name, program);
    if (!ROLES.includes(name)) return;
    const startedAt = performance.now();
    // Starts a role again that ended because it waited too long for the leaders, as its service manager does.
    void program.exit().then(() => {
      const hasWaited = performance.now() - startedAt >= CLUSTER_READY_MS;
      if (hasWaited && programs.get(name) === program) start(name, command);
    });
  }

  async function shell(command: string) {
    return await runCommand("sh", ["-c", `cd ${folder}\n${local(command)}`], { PATH: path });
  }

  /** Repeats commands until each of them succeeds. */
  async function eventually(commands: string): Promise<void> {
    let ended: Awaited<ReturnType<typeof shell>> | undefined;
    const succeeds = async () => {
      ended = await shell(`set -e\n${commands}`);
      return ended.code === 0;
    };
    await until(commands, succeeds, START_MS_MAX).catch((error) => {
      throw new Error(`${error.message}: ${ended?.stdout}${ended?.stderr}`);
    });
  }

  /** Runs commands of a page, and expects each to succeed. */
  async function run(commands: string): Promise<void> {
    const { code, stdout, stderr } = await shell(`set -e\n${commands}`);
    expect(code, `${commands}: ${stdout}${stderr}`).to.equal(0);
  }

  async function healthy(): Promise<void> {
    for (const port of ["8787", "8788", "8789"]) await answers(port);
  }

  async function answers(port: string): Promise<void> {
    const url = `http://127.0.0.1:${ports.get(port)}/healthz`;
    const isReady = () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false, // It does not listen yet.
      );
    await until(`port ${port} is healthy`, isReady, START_MS_MAX).catch((error) => {
      const lines = Array.from(programs, ([name, { lines: all }]) => [name, ...all.slice(-5)]);
      throw new Error(`${error.message}: ${lines.flat().join("\n")}`);
    });
  }

  async function makeToken(): Promise<string> {
    const { account_id, api_token } = credentials;
    const url = `http://127.0.0.1:${ports.get("8787")}/v4/accounts/${account_id}/tokens`;
    const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
    const body = await answered<{ result: { value: string } }>(url, {
      method: "POST",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ name: "made by an operator", policies }),
    });
    return body.result.value;
  }

  async function expectTokens(): Promise<void> {
    const url = `http://127.0.0.1:${ports.get("8787")}/v4/user/tokens/verify`;
    for (const token of tokens) {
      await answered(url, { headers: { Authorization: `Bearer ${token}` } });
    }
  }

  /**
   * Expects status 200. Repeats the request while the platform is unavailable: on a busy machine, an election lasts
   * longer than the deadline of a request.
   */
  async function answered<B>(url: string, request: RequestInit): Promise<B> {
    const ask = async () => {
      const response = await fetch(url, request);
      const text = await response.text();
      return response.status < 500 && { status: response.status, text };
    };
    const { status, text } = await until(`${url} answers`, ask, START_MS_MAX);
    expect(status, text).to.equal(200);
    return JSON.parse(text) as B;
  }
});

/** Sends a signal to the shell of a command and to the programs that the shell started. */
function end(program: ChildProgram, signal: NodeJS.Signals): void {
  try {
    program.signalGroup(signal);
  } catch {
    // It has ended.
  }
}

function textBefore(text: string, mark: string): string {
  return text.slice(0, text.indexOf(mark));
}

/** Returns the only `trunkline admin` command of a page that matches. */
function adminCommandOf(page: string, pattern: RegExp): string {
  const lines = shellBlocksOf(page).join("").split("\n");
  const found = lines.filter((line) => line.startsWith("trunkline admin ") && pattern.test(line));
  const [command] = found;
  if (command === undefined || found.length > 1)
    throw new Error(`${page} has ${found.length} commands that match ${pattern}, expected 1`);
  return command;
}
