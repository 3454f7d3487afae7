import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { AppFolder } from "../testing/app-folder.ts";
import { AppPlatform } from "../testing/app-platform.ts";
import { TcpProxy } from "../testing/tcp-proxy.ts";
import { until } from "../testing/until.ts";
import { REPOSITORY } from "../tools.ts";

const CONFIG = {
  name: "hooks",
  main: "src/index.ts",
  compatibility_date: "2026-11-20",
  vars: { GREETING: "hello", LIMITS: { all: [1, "two"] } },
  agents: [{ binding: "RepoAgent", class_name: "RepoAgent" }],
  artifacts: [{ binding: "ARTIFACTS", namespace: "default" }],
};

const code = (version: string) => `
import { Agent, callable, getAgentByName, routeAgentRequest } from "trunkline/agents";

interface State { count: number }

export class RepoAgent extends Agent<Env, State> {
  override initialState: State = { count: 0 };
  @callable()
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  override async onRequest(request: Request): Promise<Response> {
    const { print } = (await request.json()) as { print: string };
    console.warn(print);
    return Response.json(this.state);
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    if (pathname === "/version") return new Response("${version}");
    if (pathname === "/secret") return new Response(env.TOKEN);
    if (pathname === "/print") {
      console.log(decodeURIComponent(search.slice(1)));
      return new Response("printed");
    }
    if (pathname === "/add") {
      const agent = await getAgentByName(env.RepoAgent, "one");
      return Response.json(await agent.add(env.LIMITS.all.length));
    }
    return (await routeAgentRequest(request, env)) ?? new Response(env.GREETING, { status: 404 });
  },
};
`;

describe("trunkline for apps", function () {
  this.timeout(180_000);
  let platform: AppPlatform;
  let folder: AppFolder;
  let environment: { TRUNKLINE_API_URL: string; TRUNKLINE_API_TOKEN: string };
  before(async () => {
    platform = await AppPlatform.start({ TRUNKLINE_ROLES: "gateway,actors" });
    const { base_url, api_token } = await platform.instance.credentials();
    environment = { TRUNKLINE_API_URL: base_url, TRUNKLINE_API_TOKEN: api_token };
    folder = await AppFolder.make(environment);
  });
  after(async () => {
    await folder?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  const config = (changes: object = {}) =>
    folder.write("trunkline.jsonc", { ...CONFIG, secrets: { required: ["TOKEN"] }, ...changes });
  const version = async () => (await platform.ask("hooks", "/version")).text;
  const print = (text: string) => platform.ask("hooks", `/print?${encodeURIComponent(text)}`);

  it("secret put needs only the name from the configuration", async () => {
    await folder.write("trunkline.jsonc", '{ "name": "hooks", "agents": [{ "binding": ');
    const put = await folder.succeed(["secret", "put", "EARLY"], { input: "value" });
    expect(put).to.equal("Put secret EARLY of hooks\n");
    await folder.succeed(["secret", "delete", "EARLY"]);
    await folder.write("trunkline.jsonc", '{ "main": "src/index.ts" }');
    const nameless = await folder.run(["secret", "put", "EARLY"], { input: "value" });
    expect(nameless.code).to.equal(1);
    expect(nameless.stderr).to.match(/^trunkline\.jsonc: cannot read "name": /);
  });

  it("secret put reads the value from stdin, never from its parameters", async () => {
    await config();
    await folder.write("src/index.ts", code("one"));
    const early = await folder.run(["deploy"]);
    expect(early.code).to.equal(1);
    expect(early.stderr).to.match(
      /^Cannot deploy app "hooks": it has no secret TOKEN; set it first with `trunkline secret put`/,
    );

    const typed = await folder.run(["secret", "put", "TOKEN", "s3cret"]);
    expect(typed.code).to.equal(2);
    expect(typed.stderr)
      .to.match(/^Cannot take a secret's value as a parameter/)
      .and.not.include("s3cret");
    const empty = await folder.run(["secret", "put", "TOKEN"], { input: "\n" });
    expect(empty.stderr).to.equal("Cannot put secret TOKEN: its value is empty\n");
    const put = await folder.succeed(["secret", "put", "TOKEN"], { input: "two\nlines\n" });
    expect(put).to.equal("Put secret TOKEN of hooks\n");
  });

  it("deploy bundles and uploads the folder, and prints the app's address", async () => {
    const told = await folder.succeed(["deploy"]);
    expect(told).to.match(/^Deployed hooks, version 1 \(\d+ kB\)\n/);
    expect(told).to.match(/^For people {4}http:\/\/localhost:\d+$/m);
    expect(told).to.include(`${platform.url}/apps/${platform.accountId}/hooks`);
    expect(await version()).to.equal("one");
    expect((await platform.ask("hooks", "/secret")).text).to.equal("two\nlines");
    expect((await platform.ask("hooks", "/add")).text).to.equal("2");
    expect((await platform.ask("hooks", "/else")).text).to.equal("hello");
  });

  it("deploy warns of a date in the future, and uploads nothing with --dry-run", async () => {
    await config({ compatibility_date: "2999-01-01" });
    const { code, stdout, stderr } = await folder.run(["deploy", "--dry-run"]);
    expect({ code, stderr }).to.deep.equal({
      code: 0,
      stderr: "trunkline.jsonc: warning: compatibility_date 2999-01-01 is in the future\n",
    });
    expect(stdout).to.match(/^hooks: \d+ kB; nothing was deployed\n$/);
    await config();
  });

  it("deploy prints the server's reason when a version does not start, and the old version keeps serving", async () => {
    await folder.write("src/index.ts", `throw new Error("broken at start");`);
    const { code: ended, stderr } = await folder.run(["deploy"]);
    expect(ended).to.equal(1);
    expect(stderr).to.match(/^Cannot deploy app "hooks": .*broken at start/);
    expect(await version()).to.equal("one");
    const named = code("one").replace("export default", "export const app =");
    await folder.write("src/index.ts", named);
    const nameless = await folder.run(["deploy"]);
    expect(nameless.code).to.equal(1);
    expect(nameless.stderr).to.match(
      /^Cannot deploy app "hooks": its module has no default export/,
    );
    expect(await version()).to.equal("one");
    await folder.write("src/index.ts", "export default {");
    const unread = await folder.run(["deploy"]);
    expect(unread.code).to.equal(1);
    expect(unread.stderr).to.include("src/index.ts:1:16");
  });

  it("versions lists deployed versions, rollback serves an earlier one again", async () => {
    await folder.write("src/index.ts", code("three"));
    expect(await folder.succeed(["deploy"])).to.include("version 4");
    const lines = (await folder.succeed(["versions"])).split("\n");
    expect(lines[1]).to.match(/^\s+4 {2}serving/);
    expect(lines[2]).to.match(/^\s+3 {2}broken .*no default export/);
    expect(lines[3]).to.match(/^\s+2 {2}broken .*broken at start/);
    expect(lines[4]).to.match(/^\s+1 {2}ready/);
    expect(await folder.succeed(["rollback"])).to.equal("hooks serves version 1\n");
    await until("version one serves", async () => (await version()) === "one");
    expect(await folder.succeed(["rollback", "4"])).to.equal("hooks serves version 4\n");
    const unknown = await folder.run(["rollback", "77", "--app", "hooks"]);
    expect(unknown.code).to.equal(1);
    expect(unknown.stderr).to.match(/^Cannot .*77/);
    const odd = await folder.run(["rollback", "first"]);
    expect(odd.code).to.equal(2);
  });

  it("secret list shows names, secret delete deletes one", async () => {
    await folder.succeed(["secret", "put", "OTHER", "-a", "hooks"], { input: "value" });
    const listed = await folder.succeed(["secret", "list"]);
    expect(listed)
      .to.match(/^NAME\s+PUT\n/)
      .and.include("OTHER")
      .and.include("TOKEN");
    expect(listed).to.not.include("value");
    expect(await folder.succeed(["secret", "delete", "OTHER"])).to.equal(
      "Deleted secret OTHER of hooks\n",
    );
    expect((await folder.run(["secret", "delete", "OTHER"])).code).to.equal(1);
    expect((await folder.run(["secret", "put", "NO-NAME"])).code).to.equal(2);
  });

  it("types writes an Env that type-checks the app's code", async () => {
    expect(await folder.succeed(["types"])).to.equal("Wrote worker-configuration.d.ts\n");
    const written = await folder.read("worker-configuration.d.ts");
    expect(written).to.include("readonly GREETING: string;").and.include("readonly TOKEN: string;");
    expect(written).to.include('AgentNamespace<import("./src/index.ts").RepoAgent>');
    const options = { target: "es2022", module: "esnext", moduleResolution: "bundler" };
    const compileWith = (types: object) =>
      folder.write("tsconfig.json", {
        compilerOptions: { ...options, strict: true, noEmit: true, ...types },
        include: ["src", "*.d.ts"],
      });
    await compileWith({ types: [] });
    expect(await checked()).to.equal("");
    // Adds the types of Node, and leaves out the types of browsers.
    await symlink(
      join(REPOSITORY, "node_modules/@types"),
      join(folder.path, "node_modules/@types"),
    );
    await compileWith({ types: ["node"], lib: ["es2022"] });
    await folder.write(
      "src/bad.ts",
      "export const bad = (env: Env) => [env.GREETING.length, env.GREETNG];",
    );
    const wrong = await checked();
    expect(wrong).to.match(/^src\/bad\.ts\(1,\d+\): error TS2551: .*GREETING/);
    expect(wrong.match(/error TS/g)).to.have.length(1);
    await folder.write("src/bad.ts", "export {};");

    await folder.write("mine.d.ts", "interface Mine {}");
    const kept = await folder.run(["types", "mine.d.ts"]);
    expect(kept.code).to.equal(1);
    expect(await folder.read("mine.d.ts")).to.equal("interface Mine {}");
  });

  it("tail prints lines live and reconnects, until Ctrl-C", async () => {
    const proxy = await TcpProxy.start(Number(new URL(platform.url).port));
    try {
      await print("before");
      await until("the line is there", async () => {
        const { body } = await platform.rest("GET", "/apps/hooks/logs");
        return JSON.stringify(body).includes("before");
      });
      const through = { TRUNKLINE_API_URL: `http://127.0.0.1:${proxy.port}` };
      await using tail = folder.start(["tail", "-n", "1"], through);
      expect(await tail.line("before")).to.match(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}before$/);
      await platform.ask("hooks", "/agents/repo-agent/a%1b[31mb", {
        method: "POST",
        body: JSON.stringify({ print: "red \u001b[31m\u0007" }),
      });
      expect(await tail.line("red")).to.match(/ WARN {2}\[RepoAgent ab\] red \\x07$/);
      await platform.ask("hooks", "/agents/repo-agent/a", { method: "POST", body: "null" });
      const at =
        code("")
          .split("\n")
          .findIndex((line) => line.includes("request.json()")) + 1;
      expect(await tail.line("RepoAgent.onRequest")).to.include(`(src/index.ts:${at}:`);
      proxy.cut();
      await tail.line("trying again");
      for (let number = 0; number < 20; number++) await print(`missed ${number}.`);
      proxy.open();
      await tail.line("missed 19.");
      const missed = tail.lines.filter((line) => line.includes("missed"));
      expect(missed.map((line) => Number(/missed (\d+)/.exec(line)?.[1]))).to.deep.equal(
        Array.from({ length: 20 }, (_, number) => number),
      );
      expect(tail.lines.filter((line) => line.includes("trying again"))).to.have.length(1);
      tail.signal("SIGINT");
      expect(await tail.exit()).to.equal(0);
    } finally {
      await proxy.stop();
    }
    const lost = await folder.run(["tail", "--app", "nowhere"]);
    expect(lost.code).to.equal(1);
    expect(lost.stderr).to.match(/^Cannot .*nowhere/);
    expect((await folder.run(["tail", "-n", "1000000"])).code).to.equal(2);
  });

  it("dev deploys at each save, reports errors, and ends with Ctrl-C", async () => {
    await using dev = folder.start(["dev"]);
    await dev.line("serves at");
    await folder.write("src/index.ts", code("saved"));
    await until("what was saved serves", async () => (await version()) === "saved", 90_000);
    await print("seen by dev");
    await dev.line("seen by dev");

    await folder.write("src/index.ts", `${code("broken")} }}`);
    await dev.line("src/index.ts:");
    await dev.line("The previous version keeps serving");
    expect(await version()).to.equal("saved");
    await folder.write("src/index.ts", `${code("stops")} throw new Error("not today");`);
    await dev.line("not today");
    expect(await version()).to.equal("saved");

    await config({ vars: { ...CONFIG.vars, GREETING: "changed" }, agnets: [] });
    await dev.line("is agents meant?");
    await folder.write("src/index.ts", code("again"));
    await config({ vars: { ...CONFIG.vars, GREETING: "changed" } });
    await until(
      "the configuration is in force",
      async () => (await platform.ask("hooks", "/else")).text === "changed",
      90_000,
    );
    expect(await version()).to.equal("again");
    dev.signal("SIGINT");
    expect(await dev.exit()).to.equal(0);
  });

  it("dev deploys only to this machine, unless requested otherwise", async () => {
    const elsewhere = new AppFolder(folder.path, {
      ...environment,
      TRUNKLINE_API_URL: "https://platform.example",
      TRUNKLINE_ACCOUNT_ID: platform.accountId,
    });
    const { code: ended, stderr } = await elsewhere.run(["dev"]);
    expect(ended).to.equal(1);
    expect(stderr).to.include("platform.example: it is not this machine; pass --remote");
  });

  it("deliveries lists the events of an agent, shows one, and delivers it again", async () => {
    const webhook = {
      ...{ path: "/in/:entity", provider: "hmac", secret: "TOKEN", agent: "RepoAgent" },
      ...{ entity: { path: true }, event_id: { header: "x-id" }, hmac: { header: "x-signature" } },
    };
    await config({ webhooks: [webhook] });
    await folder.succeed(["secret", "put", "TOKEN"], { input: "key" });
    await folder.succeed(["deploy"]);
    for (const id of ["first", "second"]) {
      const body = JSON.stringify({ print: id });
      const signature = createHmac("sha256", "key").update(body).digest("hex");
      await until(`${id} is taken`, async () => {
        const headers = {
          "x-id": id,
          "x-signature": signature,
          "content-type": "application/json",
        };
        const { status } = await platform.ask("hooks", "/in/box", {
          method: "POST",
          headers,
          body,
        });
        return status === 202;
      });
    }
    const agent = ["RepoAgent", "box"];
    const listed = await until("both are delivered", async () => {
      const text = await folder.succeed(["deliveries", "list", ...agent, "--status", "delivered"]);
      return text.includes("first") && text.includes("second") && text;
    });
    expect(listed.split("\n")[1]).to.match(/^\s*2 {2}delivered .*second/);
    const page = await folder.succeed(["deliveries", "list", ...agent, "--limit", "1"]);
    expect(page).to.match(/More: --cursor \d+\n$/);
    const shown = JSON.parse(await folder.succeed(["deliveries", "show", ...agent, "1"]));
    expect(shown).to.deep.include({ event_id: "first", body: '{"print":"first"}' });
    expect(await folder.succeed(["deliveries", "replay", ...agent, "1"])).to.equal(
      "replays 1 delivery\n",
    );
    await until("it came again, which the list shows", async () => {
      const text = await folder.succeed(["deliveries", "list", ...agent]);
      expect(text).to.match(/TRIES {2}REPLAYS {2}TYPE/);
      return /^\s*1 {2}delivered .* ago +\d+ +1 +first/m.test(text);
    });
    const all = await folder.succeed([
      "deliveries",
      "replay",
      ...agent,
      "--from",
      "1",
      "--to",
      "2",
    ]);
    expect(all).to.match(/^replays \d deliver(y|ies)\n$/);
    expect((await folder.run(["deliveries", "replay", ...agent])).code).to.equal(2);
    const odd = await folder.run(["deliveries", "list", ...agent, "--status", "lost"]);
    expect(odd.code).to.equal(1);
    expect(odd.stderr).to.match(/status/);
  });

  it("deliveries list names the failed line in the app's own files", async () => {
    const body = "null";
    const signature = createHmac("sha256", "key").update(body).digest("hex");
    const headers = { "x-id": "fails", "x-signature": signature };
    await platform.ask("hooks", "/in/failing", { method: "POST", headers, body });
    await until("it was tried", async () => {
      const text = await folder.succeed(["deliveries", "list", "RepoAgent", "failing"]);
      return /TypeError: .* \(at .*src\/index\.ts:\d+:\d+/.test(text);
    });
  });

  it("answers 413 to a too large webhook body, also with Node's fetch", async () => {
    const url = `${platform.url}/apps/${platform.accountId}/hooks/in/box`;
    const chunked = () => {
      let count = 20;
      return new ReadableStream({
        pull(controller) {
          count -= 1;
          if (count < 0) controller.close();
          else controller.enqueue(new Uint8Array(1024 * 1024));
        },
      });
    };
    // Without a signature, the body would not be read.
    const headers = { "x-signature": "00" };
    for (const body of [new Uint8Array(20_000_000), chunked(), chunked()]) {
      const options = { method: "POST", headers, body, duplex: "half" } as RequestInit;
      const { status } = await fetch(url, options);
      expect(status).to.equal(413);
    }
  });

  it("delete asks for confirmation, and without a terminal requires --force", async () => {
    const asked = await folder.run(["delete"]);
    expect(asked.code).to.equal(2);
    expect(asked.stderr).to.match(/^Cannot ask for confirmation: .* --force to delete hooks/);
    expect(await folder.succeed(["delete", "--force"])).to.equal("Deleted hooks\n");
    const gone = await folder.run(["versions"]);
    expect(gone.code).to.equal(1);
    expect(gone.stderr).to.match(/^Cannot .*hooks/);
  });

  /** Runs the TypeScript compiler on the folder and returns its output. */
  async function checked(): Promise<string> {
    const compiler = join(REPOSITORY, "node_modules/typescript/bin/tsc");
    const options = { cwd: folder.path };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [compiler, "-p", "."],
      options,
    ).catch((error: { stdout: string }) => error);
    return stdout;
  }
});
