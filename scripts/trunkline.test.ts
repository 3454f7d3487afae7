import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { BUS_CONNECT_MS } from "../schemas/limits.ts";
import { freePort } from "./free-port.ts";
import { runCommand, trunkline } from "./testing/command-line.ts";
import { startTcpServer } from "./testing/loopback-server.ts";
import { startNats } from "./testing/nats-server.ts";

const COMMANDS = ["admin shards", "admin tasks", "admin dead list", "admin dead show <number>"];

describe("command line", function () {
  this.timeout(90_000);

  it("shows the help of the named command only", async () => {
    const expected = [
      ["admin --help", /^Usage: trunkline admin <command>\n/, [...COMMANDS], ["secret put"]],
      [
        "admin dead --help",
        /^Usage: trunkline admin /,
        ["admin dead show <number>"],
        ["admin tasks"],
      ],
      ["admin tasks -h", /^Usage: trunkline admin /, ["admin tasks"], ["admin dead"]],
      [
        "secret --help",
        /^Usage: trunkline secret <command>\n/,
        ["secret put"],
        ["deploy", "admin"],
      ],
      ["secret put --help", /^Usage: trunkline secret put /, ["stdin"], ["secret list"]],
    ] as const;
    for (const [command, usage, named, others] of expected) {
      const { code, stdout, stderr } = await trunkline(command.split(" "));
      expect({ code, stderr }, command).to.deep.equal({ code: 0, stderr: "" });
      expect(stdout).to.match(usage);
      for (const text of named) expect(stdout, command).to.include(text);
      for (const text of others) expect(stdout, command).to.not.include(text);
    }
  });

  for (const command of ["", "help", "--help", "-h"]) {
    const parameters = command.split(" ").filter(Boolean);
    it(`shows its help on "${command}"`, async () => {
      const { code, stdout, stderr } = await trunkline(parameters);
      expect(code).to.equal(0);
      expect(stderr).to.equal("");
      for (const command of COMMANDS) expect(stdout).to.include(command);
    });
  }

  it("prints its version", async () => {
    const { code, stdout, stderr } = await trunkline(["--version"]);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    expect(stdout).to.match(/^trunkline \d+\.\d+\.\d+\n$/);
  });

  it("can be run by its name in scripts/", async () => {
    const program = join(import.meta.dirname, "trunkline");
    expect((await runCommand(program, ["--help"])).stdout).to.include("Usage: trunkline");
  });

  const mistakes = {
    crawl: 'Cannot run "crawl": no such command',
    admin:
      'Cannot run "admin": expected shards, tasks, trace, dead, doctor, backup, restore, bus-credentials, streams or secrets after it',
    "admin nodes": 'Cannot run "admin nodes": no such command',
    "admin dead burn": 'Cannot run "admin dead burn": expected list, show, retry or drop',
  };
  for (const [command, problem] of Object.entries(mistakes)) {
    it(`reports the error in "${command}" and points to the help, without a bus`, async () => {
      const { code, stdout, stderr } = await trunkline(command.split(" "));
      expect(code).to.equal(2);
      expect(stdout).to.equal("");
      expect(stderr).to.equal(`${problem}\ntrunkline --help lists all commands\n`);
    });
  }

  it("reports in one line that nobody listens at the address of the bus", async () => {
    const port = await freePort();
    const { code, stderr } = await trunkline(
      ["admin", "dead", "list"],
      `nats://trunkline:secret@127.0.0.1:${port}`,
    );
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /^Cannot connect to the bus at nats:\/\/127\.0\.0\.1:\d+: connection refused\n$/,
    );
  });

  it("times out on a bus that accepts connections and does not respond", async () => {
    await using silent = await startTcpServer(() => {}, "127.0.0.1");
    const url = `nats://127.0.0.1:${silent.port}`;
    const startedAt = performance.now();
    const { code, stderr } = await trunkline(["admin", "tasks"], url);
    // The upper bound includes the time that a slow machine needs to start a program.
    expect(performance.now() - startedAt).to.be.within(BUS_CONNECT_MS, BUS_CONNECT_MS + 40_000);
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Cannot connect to the bus at .*: timeout\n$/);
  });

  it("reports in one line that the password is wrong", async () => {
    await using nats = await startNats();
    const url = nats.url.replace(/:[^:@]*@/, ":wrong@");
    const { code, stderr } = await trunkline(["admin", "shards"], url);
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /^Cannot connect to the bus at .*: the servers refuse this user: .*\n$/,
    );
    expect(stderr).to.not.include("wrong");
  });

  it("reports in one line that the bus has no streams of Trunkline", async () => {
    await using nats = await startNats();
    for (const noun of [["tasks"], ["dead", "list"]]) {
      const { code, stderr } = await trunkline(["admin", ...noun], nats.url);
      expect(code).to.equal(1);
      expect(stderr).to.equal("Cannot ask the bus: stream not found\n");
    }
  });

  it("names the places where it looked for the bus of this machine", async () => {
    const program = join(import.meta.dirname, "trunkline");
    const { code, stderr } = await runCommand(program, ["admin", "tasks"], {
      TRUNKLINE_DATA: import.meta.dirname,
    });
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Cannot find the bus: .*nats\.url cannot be read; set TRUNKLINE_/);
    expect(stderr.trimEnd().split("\n")).to.have.length(1);
  });

  it("brings the tools of a start and of a restore into a data folder, and none for other commands", async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-program-"));
    const program = join(folder, "scripts/trunkline");
    await mkdir(join(folder, "scripts"));
    await mkdir(join(folder, "node_modules/.bin"), { recursive: true });
    await copyFile(join(import.meta.dirname, "trunkline"), program);
    const asked = `#!/bin/sh\n[ "$1" = "" ] && echo "$2"\nexit 1\n`;
    await writeFile(join(folder, "scripts/setup"), asked, { mode: 0o755 });
    const node = "#!/bin/sh\necho run\n";
    await writeFile(join(folder, "node_modules/.bin/node"), node, { mode: 0o755 });
    const output = async (command: string, url = "") => {
      const environment = { TRUNKLINE_NATS_URL: url };
      return (await runCommand(program, command.split(" "), environment)).stdout.trim();
    };
    try {
      expect(await output("start")).to.equal("start");
      expect(await output("admin restore /backups")).to.equal("restore");
      expect(await output("admin restore /backups --from now")).to.equal("restore");
      expect(await output("admin restore /backups", "nats://bus")).to.equal("run");
      for (const command of ["admin restore", "admin restore --help", "admin backup /backups"]) {
        expect(await output(command), command).to.equal("run");
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
