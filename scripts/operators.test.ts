import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { SHARDS } from "../schemas/limits.ts";
import { mailIn } from "../schemas/split-streams.ts";
import { shardOf } from "../schemas/subjects.ts";
import { freePort } from "./free-port.ts";
import { ChildProgram } from "./testing/child-program.ts";
import { runCommand, trunkline } from "./testing/command-line.ts";
import { natsCliOrSkip } from "./testing/nats-cli.ts";
import { startNats, type TestNatsServer } from "./testing/nats-server.ts";
import { until } from "./testing/until.ts";
import { REPOSITORY } from "./tools.ts";

const START = join(import.meta.dirname, "start.ts");
const LOST = "account.lost";

describe("operators' commands", function () {
  this.timeout(240_000);
  let cli: string;
  let dataDir: string;
  let port: number;
  let server: TestNatsServer | undefined;
  let program: ChildProgram | undefined;
  let account: string;
  let token: string;

  before(async function () {
    cli = await natsCliOrSkip(this);
    dataDir = await mkdtemp(join(tmpdir(), "trunkline-operators-"));
    port = await freePort();
    server = await startNats();
    // Writes the file that an instance with an embedded server would write.
    await writeFile(join(dataDir, "nats.system.url"), `${server.systemUrl}\n`);
    program = new ChildProgram([process.execPath, START], {
      TRUNKLINE_DATA: dataDir,
      TRUNKLINE_PORT: String(port),
      TRUNKLINE_NATS_URL: server.url,
      TRUNKLINE_ROLES: "gateway,actors,browser",
    });
    await program.line("Trunkline runs");
    const credentials = JSON.parse(await readFile(join(dataDir, "credentials.json"), "utf8"));
    account = credentials.account_id;
    token = credentials.api_token;
    expect(await statusOf("tokens")).to.equal(200);
    expect(await statusOf("browser-rendering/pdf", { html: "<p>one</p>" })).to.equal(200);
    expect(await statusOf("browser-rendering/pdf", { url: "http://127.0.0.1/" })).to.equal(422);
  });
  after(async () => {
    await program?.[Symbol.asyncDispose]();
    await server?.stop();
    if (dataDir !== undefined) await rm(dataDir, { recursive: true });
  });

  describe("nats service", () => {
    it("ls lists every role", async () => {
      const text = await nats("service", "ls");
      expect(text).to.match(/trunkline-gateway .* Answers HTTP requests, an endpoint a route /);
      expect(text).to.match(/trunkline-actors .* Runs actors: one place for each key /);
      expect(text).to.match(
        /trunkline-browser .* Renders pages in headless Chromium, and fetches for crawls /,
      );
    });

    it("info names a role's host, its shards, its slots and its endpoints", async () => {
      const actors = await nats("service", "info", "trunkline-actors");
      expect(actors).to.match(/host: [\w-]+-[0-9a-f]{8}\n/);
      expect(actors).to.include(`shards: ${SHARDS}\n`);
      expect(actors).to.match(/Name: account_createToken\n\s+Subject: shard\.\*\.account\.>/);
      const browser = await nats("service", "info", "trunkline-browser");
      expect(browser).to.match(/slots: interactive \d+, batch \d+\n/);
      expect(browser).to.match(/browsers: 1\n/);
      expect(browser).to.match(/contextsInUse: 0\n/);
      expect(browser).to.match(/Name: render_pdf\n\s+Subject: task\.render\.interactive/);
      expect(browser).to.match(/Last Error: address_refused: Cannot load 127\.0\.0\.1: /);
      const gateway = await nats("service", "info", "trunkline-gateway");
      expect(gateway).to.match(
        /Name: listTokens\n\s+Subject: GET \/v4\/accounts\/\{account_id\}\/tokens\n/,
      );
    });

    it("stats counts requests and errors of each endpoint", async () => {
      const gateway = await stats("trunkline-gateway");
      expect(gateway.get("listTokens")).to.deep.equal({ requests: 1, errors: 0 });
      // The refusal of a forbidden page is a normal response and does not count as an error of the gateway.
      expect(gateway.get("renderPdf")).to.deep.equal({ requests: 2, errors: 0 });
      expect(gateway.get("deleteToken")).to.deep.equal({ requests: 0, errors: 0 });
      const browser = await stats("trunkline-browser");
      expect(browser.get("render_pdf")).to.deep.equal({ requests: 2, errors: 1 });
      const actors = await stats("trunkline-actors");
      // A call that is not answered in time is sent again, and counts again.
      const verified = actors.get("api-token_verify");
      expect(verified?.requests).to.be.at.least(3);
      expect(verified?.errors).to.equal(0);
      // The worker reports the browser time after its answer, so the test waits.
      await until("the report is counted", async () => {
        const { requests } = (await stats("trunkline-actors")).get("browser-time_used") ?? {};
        return requests !== undefined && requests > 0;
      });
    });

    it("stats counts unknown messages under one name", async () => {
      await nats("req", "actor.stranger.1", '{"message":"get"}');
      const actors = await stats("trunkline-actors");
      expect(actors.get("unknown_unknown")).to.deep.equal({ requests: 1, errors: 1 });
    });
  });

  describe("nats kv", () => {
    it("ls lists the bucket of states, and its keys by a filter", async () => {
      expect(await nats("kv", "ls")).to.match(/state-0 .* State of actors, with leases, epochs/);
      const keys = (await nats("kv", "ls", "state-0")).split("\n");
      expect(keys).to.include.members([`account.${account}`, "installation.main", "epoch.63"]);
      expect(keys).to.include("user.admin=40trunkline.localhost");
      expect(await nats("kv", "ls", "state-0", "lease.*")).to.match(/^lease\.[\w-]+\n$/);
    });

    it("get shows an actor's state, a shard's owner and a host's lease as JSON", async () => {
      const value = async (key: string) =>
        JSON.parse(await nats("kv", "get", "state-0", key, "--raw"));
      expect(await value(`account.${account}`)).to.nested.include({ "state.name": "Main" });
      const lease = (await nats("kv", "ls", "state-0", "lease.*")).trim();
      const host = lease.slice("lease.".length);
      expect(await value("epoch.5")).to.deep.equal({ owner: host });
      expect(await value(lease)).to.include({ leaving: false });
      expect(await nats("kv", "get", "state-0", "epoch.5")).to.match(/epoch\.5 .*revision: \d+/);
    });

    it("watch follows the leases", async () => {
      await using watch = new ChildProgram(
        [cli, "-s", url(), "kv", "watch", "state-0", "lease.*"],
        {},
      );
      await until("two renewals", () => watch.lines.filter(isRenewal).length >= 2);
    });
    // A lease that is longer because the machine is slow has its lifetime, too.
    const isRenewal = (line: string) =>
      /PUT state-0 > lease\.[\w-]+: \{"leaving":false,"server":"N[A-Z2-7]{55}","form":2(,"ttlMs":\d+)?\}$/.test(
        line,
      );
  });

  describe("nats stream and consumer", () => {
    it("report and ls show every stream and its purpose", async () => {
      const report = await nats("stream", "report");
      for (const stream of ["KV_state-0", "MAIL", "TASKS", "DEAD"]) {
        expect(report).to.match(new RegExp(`│ ${stream} +│ File `));
      }
      const list = await nats("stream", "ls");
      expect(list).to.match(/DEAD .* Messages nobody could handle, with their error/);
      expect(list).to.match(/TASKS .* Work for workers, a subject a lane/);
    });

    it("consumer report shows each lane", async () => {
      const report = await nats("consumer", "report", "TASKS");
      expect(report).to.match(/│ render-batch +│ Pull /);
      expect(report).to.match(/│ render-interactive +│ Pull /);
    });

    it("view and get show a dead letter, admin dead lists it", async function () {
      const mail = '{"from":"operator","message":"vanish","input":{"why":"a test"}}';
      await nats("pub", mailIn(0).to(shardOf(LOST), LOST), mail);
      const letter = await until("the letter", async () => {
        const { code, stdout } = await run("stream", "get", "DEAD", "1");
        return code === 0 && stdout;
      });
      expect(letter).to.include("Item: DEAD#1 ");
      expect(letter).to.include(`on Subject dead.${LOST}`);
      expect(letter).to.include('"error":"Cannot handle \\"vanish\\": account knows open, get');
      const { stdout } = await trunkline(["admin", "dead", "list"], url());
      expect(stdout).to.match(/^1 .* account\.lost {2}vanish {2}1 try {2}Cannot handle "vanish"/);
      const inTerminal = await runCommand("script", [
        "-qec",
        `'${cli}' -s '${url()}' stream view DEAD`,
        "/dev/null",
      ]);
      if (inTerminal.code === -1) return this.skip(); // It pages, and this machine lends no terminal.
      expect(inTerminal.stdout).to.include(`dead.${LOST}`);
    });
  });

  describe("nats req", () => {
    const ask = (payload: string) => nats("req", `actor.account.${account}`, payload);

    it("calls an actor, and shows its reply", async () => {
      expect(await ask('{"message":"get","input":{}}')).to.include('{"name":"Main","createdAt":');
    });

    it("lists the actor's messages if the message is unknown", async () => {
      const answer = await ask('{"message":"gett","input":{}}');
      expect(answer).to.include("Nats-Service-Error-Code: 400");
      expect(answer).to.include(
        'Nats-Service-Error: Cannot handle "gett": account knows open, get,',
      );
    });

    it("shows the errors of an input, and the syntax of a call", async () => {
      expect(await ask('{"message":"getToken"}')).to.include("Cannot read getToken: /id: ");
      expect(await ask("get")).to.include(
        'Cannot read call: expected JSON like {"message":"<name>","input":{}}',
      );
      expect(await nats("req", "actor.acount.x", "{}")).to.include("Cannot ");
    });
  });

  describe("docs/operate/monitoring.md", () => {
    // `kv watch` is excluded, because it is the only command that does not end.
    const commands = Array.from(
      readFileSync(join(REPOSITORY, "docs/operate/monitoring.md"), "utf8").matchAll(
        /^\$ ((?:nats|trunkline) .*?)(?: +# .*)?$|`(nats -s "\$\(cat .*?)`/gm,
      ),
      ([, shown, named]) => shown ?? named ?? "",
    ).filter((command) => !command.includes(" kv watch "));

    it("names at least the main commands of the sections above", () => {
      expect(commands.join("\n"))
        .to.include("nats service stats trunkline-gateway\n")
        .and.include("trunkline admin tasks\n")
        .and.include("nats kv get state-0 epoch.5 --raw\n")
        .and.include("server report jetstream");
      expect(commands.length).to.be.at.least(12);
    });

    for (const shown of commands) {
      it(`${shown} works as documented`, async () => {
        const command = shown
          .replace(/\b[0-9a-f]{32}\b/, account)
          .replace("$(cat data/", `$(cat ${dataDir}/`);
        const PATH = `${join(REPOSITORY, "scripts")}:${process.env.PATH}`;
        const environment = { PATH, NATS_URL: url(), TRUNKLINE_NATS_URL: url() };
        const { code, stdout, stderr } = await runCommand(
          "sh",
          ["-c", `nats() { '${cli}' "$@"; }; cd '${REPOSITORY}' && ${command}`],
          environment,
        );
        expect(code, stderr).to.equal(0);
        expect(stdout + stderr)
          .to.match(/\w/)
          .and.not.match(/error:|^nats: /m);
      });
    }

    it("server report shows connections to the other user", async () => {
      const report = ["server", "report", "connections"];
      const { code, stdout } = await runCommand(cli, ["-s", server?.systemUrl ?? "", ...report]);
      expect(code).to.equal(0);
      expect(stdout).to.include("trunkline-gateway").and.include("trunkline-browser");
    });
  });

  describe("a stop", () => {
    it("removes every role from the list, and releases every shard", async () => {
      program?.signal("SIGTERM");
      expect(await program?.exit()).to.equal(0);
      expect((await run("service", "ls")).stderr).to.include("no service instances found");
      const { stdout } = await trunkline(["admin", "shards"], url());
      expect(stdout).to.match(/^0 of 64 shards have an owner; no host owns 0-63\n$/);
    });
  });

  const run = (...parameters: string[]) => runCommand(cli, ["-s", url(), ...parameters]);

  async function nats(...parameters: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(...parameters);
    expect(code, `nats ${parameters.join(" ")}: ${stderr}`).to.equal(0);
    // The nats tool writes texts other than the payload to stderr.
    return stderr + stdout;
  }

  async function stats(service: string) {
    const text = await nats("service", "stats", service);
    const rows = text.matchAll(/│ +(?:\w{22} +)?│ ([\w-]+) +│ (\d+) +│ +│ (\d+) +│/g);
    return new Map(
      Array.from(rows, ([, endpoint = "", requests, errors]) => [
        endpoint,
        { requests: Number(requests), errors: Number(errors) },
      ]),
    );
  }

  function url(): string {
    if (!server) throw new Error("no server");
    return server.url;
  }

  async function statusOf(path: string, body?: unknown): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${port}/v4/accounts/${account}/${path}`, {
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
    await response.arrayBuffer();
    return response.status;
  }
});
