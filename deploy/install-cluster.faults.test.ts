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

const START_MS_MAX = 120_000;
const SERVERS = ["n1", "n2", "n3"];
const ROLES = ["gateway", "actors", "browser"];
const KEY = Buffer.alloc(32, 7).toString("base64");

describe("docs/operate", function () {
  this.timeout(600_000);
  const [, bus = "", roles = "", look = ""] = shellBlocksOf("docs/operate/install.md");
  const [users = "", certificates = "", secureServer = "", secureRole = "", secureLook = ""] =
    shellBlocksOf("docs/operate/security.md");
  const [, variables = ""] = shellBlocksOf("docs/operate/runbook.md");
  const [backup = "", , restore = ""] = adminCommandsOf("docs/operate/backup.md");
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
    for (const program of programs.values()) {
      end(program, "SIGKILL");
      await program[Symbol.asyncDispose]();
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  it("install.md starts a cluster that survives a server", async () => {
    for (const name of SERVERS) startServer(name);
    for (const role of ROLES) startRole(role, "");
    await healthy();
    const file = join(folder, "gateway/credentials.json");
    credentials = JSON.parse(await readFile(file, "utf8"));
    tokens.push(await makeToken());
    const { stdout } = await shell(settings + look);
    expect(stdout).to.include("64 of 64 shards have an owner");
    expect(stdout).to.match(/good +streams/);

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
    await run(settings + secureSettings("browser") + secureLook);
    for (const token of tokens) expect(await verify(token)).to.equal(200);
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
    for (const name of SERVERS) {
      await rm(join(folder, name), { recursive: true });
      startServer(name, secureServer);
    }
    await run(variables + restore);
    for (const role of ROLES) startRole(role, secureSettings(role));
    await healthy();
    for (const token of tokens) expect(await verify(token)).to.equal(200);
    await run(`${variables}trunkline admin doctor bus streams`);
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
    end(program, signal);
    await program.exit();
    await program[Symbol.asyncDispose]();
    programs.delete(name);
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
    programs.set(name, new ChildProgram(["sh", "-c", local(command)], { PATH: path }, options));
  }

  async function shell(command: string) {
    return await runCommand("sh", ["-c", `cd ${folder}\n${local(command)}`], { PATH: path });
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
    const response = await fetch(url, {
      method: "POST",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ name: "made by an operator", policies }),
    });
    const body = (await response.json()) as { result: { value: string } };
    expect(response.status, JSON.stringify(body)).to.equal(200);
    return body.result.value;
  }

  async function verify(token: string): Promise<number> {
    const url = `http://127.0.0.1:${ports.get("8787")}/v4/user/tokens/verify`;
    const response = await fetch(url, { headers: { Authorization: `Bearer ${token}` } });
    await response.arrayBuffer();
    return response.status;
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

function adminCommandsOf(page: string): string[] {
  return (
    shellBlocksOf(page)
      .join("")
      .match(/^trunkline admin .*$/gm) ?? []
  );
}
