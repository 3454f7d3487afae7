import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect as connectTo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { AuthorizationError, connect } from "@nats-io/transport-node";
import { expect } from "chai";
import { readBusAddress } from "../actors/runtime/bus/bus-address.ts";
import { freePort } from "./free-port.ts";
import { processCommand } from "./process-command.ts";
import { ChildProgram } from "./testing/child-program.ts";
import { startNats } from "./testing/nats-server.ts";
import { until } from "./testing/until.ts";

const PROGRAM = join(import.meta.dirname, "testing/test-program.ts");
const START = join(import.meta.dirname, "start.ts");
const START_MS_MAX = 120_000;

describe("program", function () {
  this.timeout(180_000);
  let dataDir: string;
  let temporary: string;
  let port: number;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "trunkline data "));
    temporary = await mkdtemp(join(tmpdir(), "trunkline-program-"));
    // If root runs the tests, browsers run as another user, and their profiles are in this folder.
    await chmod(temporary, 0o711);
    port = await freePort();
  });
  afterEach(async () => {
    // A killed program leaves its nats-server running. The next start would end the server, but no start follows
    // here.
    await endServer();
    await rm(dataDir, { recursive: true });
    await rm(temporary, { recursive: true, maxRetries: 10 });
  });

  it("runProgram() starts the bus at the address in nats.url, on the same port the next time", async () => {
    const urls: string[] = [];
    for (let start = 0; start < 2; start++) {
      await using program = startProgram();
      await program.line("ready");
      urls.push(await natsUrl());
      await (await connect(readBusAddress(urls.at(-1) ?? ""))).close();
      program.signal("SIGTERM");
      expect(await program.exit()).to.equal(0);
    }
    expect(urls[1]).to.equal(urls[0]);
  });

  it("runProgram() protects the bus by a password in its data directory, and logs no password", async () => {
    await using program = startProgram();
    await program.line("ready");
    for (const name of ["nats.url", "nats.system.url"]) {
      expect((await stat(join(dataDir, name))).mode & 0o777, name).to.equal(0o600);
    }
    const { servers, pass = "" } = readBusAddress(await natsUrl());
    const refused = await connect({ servers }).catch((error) => error);
    expect(refused).to.be.instanceOf(AuthorizationError);
    program.signal("SIGTERM");
    expect(await program.exit()).to.equal(0);
    expect(pass).to.match(/^p[0-9a-f]{48}$/);
    expect(program.lines.join("\n")).to.not.include(pass);
  });

  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    it(`runProgram() on ${signal} loses no request, then stops the actors, the bus last`, async () => {
      await using program = startProgram({ TEST_ANSWER_MS: "300" });
      await program.line("ready");
      const pid = await natsPid();
      const answer = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text());
      await program.line("request came");
      program.signal(signal);
      expect(await answer).to.equal("answered");
      expect(await program.exit()).to.equal(0);
      expect(events(program)).to.deep.equal([
        "role started actors",
        "role started gateway",
        "stopping",
        "role stopped gateway",
        "bus still there",
        "role stopped actors",
        "stopped",
      ]);
      expect(isAlive(pid)).to.equal(false);
    });
  }

  it("start.ts handles a signal before the rest is loaded, and then starts nothing", async () => {
    // Sends the signal as soon as the program has a listener for it.
    const atOnce = `process.on("newListener", (name) => {
      if (name === "SIGTERM") queueMicrotask(() => process.kill(process.pid, name)) })`;
    const preload = `data:text/javascript,${encodeURIComponent(atOnce)}`;
    await using program = new ChildProgram([process.execPath, "--import", preload, START], own());
    expect(await program.exit()).to.equal(0);
    expect(events(program)).to.deep.equal(["stopping"]);
    expect(await readdir(dataDir)).to.deep.equal([]);
  });

  const moments: [string, (program: ChildProgram) => Promise<unknown>][] = [
    [
      "the data directory is locked",
      () => until("a lock", () => has("trunkline.lock"), START_MS_MAX),
    ],
    ["the bus has begun", () => until("a pid", () => has("nats.pid"), START_MS_MAX)],
    ["the bus runs", () => until("an address", () => has("nats.url"), START_MS_MAX)],
    ["the actors have started", (program) => program.line('"role":"actors"')],
    ["the browser has started", (program) => program.line('"role":"browser"')],
    ["all is ready", (program) => program.line("credentials")],
  ];
  for (const [index, [when, moment]] of moments.entries()) {
    const signal = index % 2 === 0 ? "SIGTERM" : "SIGINT";
    it(`start.ts ends with success on ${signal} as soon as ${when}`, async () => {
      await using program = new ChildProgram([process.execPath, START], own());
      await moment(program);
      program.signal(signal);
      expect(await program.exit(), program.lines.join("\n")).to.equal(0);
      const said = events(program);
      expect(said).to.include("stopping");
      if (has("nats.pid") || has("nats.url")) expect(said.at(-1)).to.equal("stopped");
      const pid = await natsPid().catch(() => 0);
      expect(pid !== 0 && isAlive(pid)).to.equal(false);
      const left = await readdir(temporary);
      expect(left.filter((name) => name.startsWith("trunkline-chromium-"))).to.deep.equal([]);
    });
  }

  it("runProgram() keeps its bus running at a Ctrl-C that reaches the whole process group", async () => {
    await using program = startProgram({ TEST_ANSWER_MS: "300" }, { detached: true });
    await program.line("ready");
    const answer = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text());
    await program.line("request came");
    program.signalGroup("SIGINT");
    program.signalGroup("SIGINT"); // As npm does: it passes on what the terminal has sent already.
    expect(await answer).to.equal("answered");
    expect(await program.exit()).to.equal(0);
    expect(events(program)).to.include("bus still there");
  });

  it("runProgram() ends at once on a second signal", async () => {
    await using program = startProgram({ TEST_STUCK: "1" });
    await program.line("ready");
    const pid = await natsPid();
    program.signal("SIGINT");
    await program.line('"stopping"');
    // The same press is not counted twice, so the next one is given again until it is another.
    const again = setInterval(() => program.signal("SIGINT"), 50);
    expect(await program.exit()).to.equal(1);
    clearInterval(again);
    expect(events(program)).to.include("stopping at once");
    await ended(pid);
  });

  it("runProgram() serves on for TRUNKLINE_LEAVE_SECONDS before it drains; a second signal ends that", async () => {
    {
      await using program = startProgram({ TRUNKLINE_LEAVE_SECONDS: "5" });
      await program.line("ready");
      program.signal("SIGTERM");
      await program.line("leaving");
      const answer = await fetch(`http://127.0.0.1:${port}/`);
      expect(await answer.text()).to.equal("answered");
      expect(await program.exit()).to.equal(0);
    }
    await using program = startProgram({ TRUNKLINE_LEAVE_SECONDS: "300" });
    await program.line("ready");
    program.signal("SIGTERM");
    await program.line("leaving");
    // The same press is not counted twice, so the next one is given again until it is another.
    const pressing = setInterval(() => program.signal("SIGTERM"), 100);
    expect(await program.exit().finally(() => clearInterval(pressing))).to.equal(1);
  });

  it("runProgram() stops a drain after TRUNKLINE_SHUTDOWN_SECONDS, and names the late roles", async () => {
    await using program = startProgram({ TEST_STUCK: "1", TRUNKLINE_SHUTDOWN_SECONDS: "1" });
    await program.line("ready");
    const pid = await natsPid();
    program.signal("SIGTERM");
    expect(await program.exit()).to.equal(1);
    expect(await program.line("shutdown cut off: the time to stop is over")).to.include(
      '"roles":["actors"]',
    );
    await ended(pid);
  });

  it("runProgram() refuses a data directory that another instance holds", async () => {
    await using first = startProgram();
    await first.line("ready");
    await using second = startProgram({ TRUNKLINE_PORT: String(await freePort()) });
    expect(await second.exit()).to.equal(1);
    await second.line("Cannot use");
    expect(second.lines).to.deep.equal([
      `Cannot use "${dataDir}": another instance holds it (pid ${first.pid})`,
    ]);
    await (await fetch(`http://127.0.0.1:${port}/`)).text();
  });

  it("runProgram() reports in one line that a port is in use, before it starts anything", async () => {
    const other = createServer().listen(port, "127.0.0.1");
    await once(other, "listening");
    await using program = startProgram();
    expect(await program.exit()).to.equal(1);
    other.close();
    expect(program.lines).to.deep.equal([
      `Cannot listen on 127.0.0.1:${port}: the port is in use, TRUNKLINE_PORT chooses another`,
    ]);
    expect(await readdir(dataDir)).to.deep.equal([]);
  });

  it("runProgram() stops everything again when a role does not start", async () => {
    const source = `
      import { runProgram } from ${JSON.stringify(join(import.meta.dirname, "program.ts"))};
      const roles = [
        { role: "actors", start: async () => ({ name: "actors", stop: async () => {} }) },
        { role: "gateway", start: async () => { throw new Error("Cannot start: it rains"); } },
      ];
      const onReady = () => console.log("ready");
      process.exit(await runProgram({ environment: process.env, roles, onReady }));`;
    const command = [process.execPath, "--input-type=module", "--eval", source];
    await using program = new ChildProgram(command, own());
    expect(await program.exit()).to.equal(1);
    await program.line("Cannot start: it rains");
    expect(events(program).slice(-2)).to.deep.equal(["role stopped actors", "stopped"]);
    expect(isAlive(await natsPid())).to.equal(false);
  });

  it("runProgram() warns of an unknown variable that looks like a setting", async () => {
    await using program = startProgram({ TRUNKLINE_PROT: "1" });
    await program.line("ready");
    expect(await program.line("TRUNKLINE_PROT")).to.include("is TRUNKLINE_PORT meant?");
    program.signal("SIGTERM");
    expect(await program.exit()).to.equal(0);
  });

  it("runProgram() reports an invalid setting in one line", async () => {
    await using program = startProgram({ TRUNKLINE_PORT: "many" });
    expect(await program.exit()).to.equal(1);
    await program.line("TRUNKLINE_PORT");
    expect(program.lines).to.deep.equal([
      'TRUNKLINE_PORT: expected a whole number from 1 to 65535, found "many"',
    ]);
  });

  it("runProgram() starts again after kill -9, ends the server left behind and keeps the stored data", async () => {
    await using killed = startProgram();
    await killed.line("ready");
    const left = await natsPid();
    const before = await connect(readBusAddress(await natsUrl()));
    await (await jetstreamManager(before)).streams.add({ name: "KEPT", subjects: ["kept"] });
    await jetstream(before).publish("kept", "first");
    killed.signal("SIGKILL");
    await killed.exit();
    await before.close();
    expect(isAlive(left)).to.equal(true);
    await using next = startProgram();
    await next.line("ready");
    expect(isAlive(left)).to.equal(false);
    const after = await connect(readBusAddress(await natsUrl()));
    expect((await jetstream(after).publish("kept", "second")).seq).to.equal(2);
    await after.close();
    next.signal("SIGTERM");
    expect(await next.exit()).to.equal(0);
  });

  it("runProgram() restarts a dead nats-server on the same port, and logs it", async () => {
    await using program = startProgram();
    await program.line("ready");
    const url = await natsUrl();
    for (let death = 1; death <= 2; death++) {
      process.kill(await natsPid(), "SIGKILL");
      await program.line(`bus came back ${death}`);
      expect(await natsUrl()).to.equal(url);
    }
    expect(await program.line("nats-server ended")).to.include("SIGKILL");
    expect(events(program)).to.include("nats-server runs again");
    program.signal("SIGTERM");
    expect(await program.exit()).to.equal(0);
  });

  it("runProgram() uses an external bus if TRUNKLINE_NATS_URL names one, and does not stop it", async () => {
    await using first = startProgram();
    await first.line("ready");
    const outside = { TRUNKLINE_NATS_URL: await natsUrl(), TRUNKLINE_ROLES: "actors" };
    await using second = startProgram(outside);
    await second.line("ready");
    second.signal("SIGTERM");
    expect(await second.exit()).to.equal(0);
    expect(events(second)).to.not.include("role started gateway");
    await (await connect(readBusAddress(await natsUrl()))).close();
  });

  it("start.ts refuses an external bus that is too old, in one line", async () => {
    await using server = await startNats();
    const { port: oldPort, stop } = await saysItIs("2.13.9", server.port);
    const outside = { TRUNKLINE_NATS_URL: server.urlAt(oldPort) };
    await using program = new ChildProgram([process.execPath, START], { ...own(), ...outside });
    expect(await program.exit()).to.equal(1);
    expect(program.lines).to.deep.equal([
      `Cannot use the bus at 127.0.0.1:${oldPort}: nats-server 2.14 or newer is needed, it is 2.13.9`,
    ]);
    await stop();
  });

  it("runProgram() reports in one line that its data directory is not a directory", async () => {
    const file = join(dataDir, "file");
    await writeFile(file, "");
    await using program = startProgram({ TRUNKLINE_DATA: file });
    expect(await program.exit()).to.equal(1);
    expect(program.lines).to.deep.equal([
      `TRUNKLINE_DATA: expected a folder that this user may write to, found "${file}"`,
    ]);
  });

  it("runProgram() names a missing credentials file", async () => {
    const file = join(dataDir, "none.creds");
    const outside = { TRUNKLINE_NATS_URL: "nats://127.0.0.1:1", TRUNKLINE_NATS_CREDS: file };
    await using program = startProgram(outside);
    expect(await program.exit()).to.equal(1);
    await program.line(`TRUNKLINE_NATS_CREDS: expected the path of a NATS credentials file`);
  });

  function startProgram(environment: NodeJS.ProcessEnv = {}, options = {}): ChildProgram {
    return new ChildProgram([process.execPath, PROGRAM], { ...own(), ...environment }, options);
  }

  // The drain timeout is long, so that a drain also completes on a busy machine.
  const own = () => ({
    TMPDIR: temporary,
    TRUNKLINE_DATA: dataDir,
    TRUNKLINE_PORT: String(port),
    TRUNKLINE_SHUTDOWN_SECONDS: "120",
  });
  const has = (name: string) => existsSync(join(dataDir, name));

  const natsUrl = async () => (await readFile(join(dataDir, "nats.url"), "utf8")).trim();
  const natsPid = async () => Number(await readFile(join(dataDir, "nats.pid"), "utf8"));

  async function endServer(): Promise<void> {
    const pid = await natsPid().catch(() => 0); // Most tests have ended it.
    if (pid === 0 || !isAlive(pid)) return;
    process.kill(pid, "SIGKILL");
    await ended(pid);
  }
});

/** Starts a proxy to a nats-server. The proxy changes only the version that the server reports. */
async function saysItIs(version: string, port: number) {
  const proxy = createServer((client) => {
    const server = connectTo(port, "127.0.0.1");
    client.on("error", () => {}).pipe(server);
    server.on("error", () => {}).on("close", () => client.destroy());
    server.on("data", (bytes) => {
      const text = bytes.toString("latin1").replace(/"version":"[^"]+"/, `"version":"${version}"`);
      client.write(text, "latin1");
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    async stop() {
      proxy.close();
      await once(proxy, "close");
    },
  };
}

/** Returns the messages of the log, each with its role if it has one. */
function events(program: ChildProgram): string[] {
  const logged = program.lines
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  return logged.map(({ msg, role }) => (role === undefined ? msg : `${msg} ${role}`));
}

const isAlive = (pid: number) => processCommand(pid) !== "";

async function ended(pid: number): Promise<void> {
  await until("it has ended", () => !isAlive(pid));
}
