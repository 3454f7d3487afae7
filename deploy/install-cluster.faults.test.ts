/**
 * Follows docs/operate as a new operator: the commands of install.md start a cluster, which then loses a server, is
 * backed up and restored.
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
const KEY = Buffer.alloc(32, 7).toString("base64");

describe("docs/operate/install.md", function () {
  this.timeout(600_000);
  const [bus = "", roles = "", look = ""] = shellBlocksOf("docs/operate/install.md");
  const programs = new Map<string, ChildProgram>();
  const ports = new Map<string, number>();
  let folder: string;
  let path: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-install-"));
    await chmod(folder, 0o755);
    await writeFile(join(folder, "secrets-key"), KEY);
    await writeFile(join(folder, "metrics-token"), "m".repeat(48));
    // The clone's program in place of the package's.
    const npx = `#!/bin/sh\nshift\nexec '${REPOSITORY}/scripts/trunkline' "$@"\n`;
    await mkdir(join(folder, "bin"));
    await writeFile(join(folder, "bin/npx"), npx, { mode: 0o755 });
    await symlink(findNatsServer(), join(folder, "bin/nats-server"));
    path = `${join(folder, "bin")}:${process.env.PATH}`;
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

  it("its commands start a cluster that survives a server, and whose backup another bus restores", async () => {
    for (const name of SERVERS) startServer(name);
    const lines = roles.split("\n").filter((line) => line.includes("trunkline start"));
    expect(lines).to.have.length(3);
    const settings = roles.slice(0, roles.indexOf("TRUNKLINE_ROLES"));
    for (const line of lines) {
      const role = /TRUNKLINE_ROLES=(\w+)/.exec(line)?.[1] ?? "";
      start(role, `${settings}export TRUNKLINE_PORT=8787\n${line}`);
    }
    for (const port of ["8787", "8788", "8789"]) await healthy(port);
    const credentials = await readCredentials();
    const kept = await makeToken(credentials);
    const looked = await shell(settings + look);
    expect(looked.stdout).to.include("64 of 64 shards have an owner");
    expect(looked.stdout).to.match(/good +streams/);

    await stop("n2", "SIGKILL");
    const later = await makeToken(credentials);
    startServer("n2");
    const isWhole = async () =>
      (await shell(`${settings}npx trunkline admin doctor streams`)).code === 0;
    await until("all copies are current", isWhole, START_MS_MAX);

    const backups = join(folder, "backups");
    const saved = await shell(`${settings}npx trunkline admin backup ${backups}`);
    expect(saved.code, saved.stderr).to.equal(0);
    for (const name of [...programs.keys()].toReversed()) await stop(name, "SIGTERM");
    const single = join(folder, "single");
    const restored = await shell(`TRUNKLINE_DATA=${single} npx trunkline admin restore ${backups}`);
    expect(restored.code, restored.stderr).to.equal(0);
    start(
      "single",
      `TRUNKLINE_ROLES=gateway,actors TRUNKLINE_DATA=${single} TRUNKLINE_PORT=8787 npx trunkline start`,
    );
    await healthy("8787");
    for (const token of [kept, later]) expect(await verify(token)).to.equal(200);
    // Its embedded nats-server ends with it.
    await stop("single", "SIGTERM");
  });

  /** Puts the addresses of this test in place of those on the page. */
  function local(command: string): string {
    return command
      .replace(/\bn[123]:\d{4}\b/g, (address) => `127.0.0.1:${ports.get(address)}`)
      .replace(/TRUNKLINE_PORT=(878\d)/g, (_, port: string) => `TRUNKLINE_PORT=${ports.get(port)}`)
      .replace("node_modules/trunkline/", `${REPOSITORY}/`);
  }

  async function stop(name: string, signal: NodeJS.Signals): Promise<void> {
    const program = programs.get(name);
    if (!program) throw new Error(`${name} does not run`);
    end(program, signal);
    await program.exit();
  }

  function startServer(name: string): void {
    const command = bus
      .replace("NAME=n1", `NAME=${name}`)
      .replace("LISTEN=n1:4222", `LISTEN=${name}:4222`)
      .replace("LISTEN=n1:6222", `LISTEN=${name}:6222`)
      .replace("127.0.0.1:8222", `127.0.0.1:${ports.get(`${name}:8222`)}`)
      .replace("/var/lib/trunkline-bus", join(folder, name));
    start(name, command);
  }

  function start(name: string, command: string): void {
    const options = { cwd: folder, detached: true };
    programs.set(name, new ChildProgram(["sh", "-c", local(command)], { PATH: path }, options));
  }

  async function shell(command: string) {
    return await runCommand("sh", ["-c", `cd ${folder}\n${local(command)}`], { PATH: path });
  }

  async function healthy(port: string): Promise<void> {
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

  async function readCredentials(): Promise<Credentials> {
    return JSON.parse(await readFile(join(folder, "gateway/credentials.json"), "utf8"));
  }

  async function makeToken({ account_id, api_token }: Credentials): Promise<string> {
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

/** Signals the shell of a command and its programs. */
function end(program: ChildProgram, signal: NodeJS.Signals): void {
  try {
    program.signalGroup(signal);
  } catch {
    // It has ended.
  }
}
