import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect } from "chai";
import { build, stop } from "esbuild";
import { COMPILER } from "../cli/declarations.ts";
import { freePort } from "../free-port.ts";
import { until } from "../testing/until.ts";
import { WebSite } from "../testing/web-site.ts";
import { REPOSITORY } from "../tools.ts";
import { version } from "../version.ts";
import { buildPackage } from "./build-package.ts";

const run = promisify(execFile);
/** Maximum size of the package's tarball, without dependencies. */
const PACKED_BYTES_MAX = 3_000_000;
/** The user who runs the package: `nobody` if root runs the tests. */
const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
/**
 * Excludes the clone's programs. Also excludes Go, because otherwise set-up would compile nats-server for minutes.
 */
const PATH = "/usr/local/bin:/usr/bin:/bin";

describe("package", function () {
  this.timeout(900_000);
  let folder: string;
  let dist: string;
  let tarball: string;
  let work: string;
  let environment: NodeJS.ProcessEnv;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline package "));
    dist = join(folder, "dist");
    await buildPackage(dist);
    const npm = { cwd: folder, env: { ...process.env, npm_config_cache: join(folder, "cache") } };
    const { stdout } = await run("npm", ["pack", dist, "--json"], npm);
    tarball = join(folder, JSON.parse(stdout)[0].filename);
    const home = join(folder, "home");
    work = join(folder, "work");
    const { uid, gid } = USER;
    await chmod(folder, 0o755);
    for (const path of [home, work]) {
      await mkdir(path);
      if (uid !== undefined) await chown(path, uid, gid);
    }
    const port = String(await freePort());
    environment = {
      ...hostsSettings(),
      PATH,
      HOME: home,
      TRUNKLINE_PORT: port,
      TRUNKLINE_EGRESS_ALLOW: "127.0.0.1/32",
    };
  });
  after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

  const inWork = (command: string, parameters: string[]) =>
    run(command, parameters, { cwd: work, env: environment, ...USER, maxBuffer: 2 ** 24 });

  it("is small, and holds JavaScript and declarations without tests", async () => {
    const { size } = await stat(tarball);
    console.log(`      packed: ${size} bytes`);
    expect(size).to.be.below(PACKED_BYTES_MAX);
    const files = await readdir(dist, { recursive: true });
    expect(files).to.include("actors/apps/package/index.d.ts");
    expect(
      files.filter((path) => /\btest|testing|\bbench\b|(?<!\.d)\.ts$/.test(path)),
    ).to.deep.equal([]);
  });

  it("depends on what it imports, and on nothing else", async () => {
    const { dependencies } = JSON.parse(await readFile(join(dist, "package.json"), "utf8"));
    const files = await readdir(dist, { recursive: true });
    const modules = files.filter((path) => path.endsWith(".js"));
    const { metafile } = await build({
      entryPoints: modules.map((path) => join(dist, path)),
      ...{ bundle: true, packages: "external", platform: "node", format: "esm" },
      ...{ write: false, outdir: join(folder, "none"), metafile: true, logLevel: "error" },
    });
    await stop();
    const names = Object.values(metafile.inputs).flatMap(({ imports }) =>
      imports.filter(({ external }) => external).map(({ path }) => path),
    );
    // The code does not import these packages; it finds them by their names.
    names.push("swagger-ui-dist", "devtools-protocol");
    for (const path of files.filter((path) => path.endsWith(".d.ts"))) {
      const text = await readFile(join(dist, path), "utf8");
      for (const [, name = ""] of text.matchAll(/(?:from |import\()"([^."][^"\n]*)"/g)) {
        if (!name.startsWith("trunkline")) names.push(name);
      }
    }
    const imported = new Set(names.filter((name) => !isBuiltin(name)).map(packageOf));
    expect([...imported].sort()).to.deep.equal(Object.keys(dependencies).sort());
  });

  it("is installed by an ordinary user without a script of a package, and knows its version and help", async () => {
    await inWork("npm", ["install", "--ignore-scripts", tarball]);
    const { stdout } = await inWork("npx", ["trunkline", "--version"]);
    expect(stdout).to.equal(`trunkline ${version()}\n`);
    const help = await inWork("npx", ["trunkline", "--help"]);
    expect(help.stdout)
      .to.include("Usage: trunkline")
      .and.include("start  ")
      .and.include("deploy  ");
    const wrong = await inWork("npx", ["trunkline", "fly"]).catch((error) => error);
    expect({ code: wrong.code, stderr: wrong.stderr }).to.deep.equal({
      code: 2,
      stderr: 'Cannot run "fly": no such command\ntrunkline --help lists all commands\n',
    });
  });

  it("type-checks an app against its declarations alone", async () => {
    await cp(join(REPOSITORY, "deploy/apps/examples/commit-bot"), join(work, "app"), {
      recursive: true,
      filter: (path) => !path.endsWith(".test.ts"),
    });
    const file = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
    const types = `@types/node@${file.devDependencies["@types/node"]}`;
    await inWork("npm", ["install", "--ignore-scripts", "--save-dev", types]);
    const options = ["--strict", "--noEmit", "--target", "esnext", "--module", "nodenext"];
    const checked = await run(
      process.execPath,
      [COMPILER, ...options, "--types", "node", "app/src/index.ts"],
      { cwd: work },
    ).catch((error) => error);
    expect(checked.stdout).to.equal("");
    expect(checked.code).to.equal(undefined);
  });

  it("starts a platform from a read-only folder of packages, which prints, deploys and stops", async () => {
    await run("chmod", ["-R", "a-w", join(work, "node_modules")]);
    await using site = await WebSite.start("127.0.0.1");
    await using platform = start();
    await platform.line("Trunkline runs");
    const tools = await readdir(join(folder, "home/.cache/trunkline"));
    expect(tools).to.include("nats-server").and.include("compiled");
    const credentials = JSON.parse(await readFile(join(work, "data/credentials.json"), "utf8"));
    const { base_url: url, account_id: account, api_token: token } = credentials;
    const bearer = { Authorization: `Bearer ${token}` };
    const asked = async <R>(path: string, body?: object): Promise<R> => {
      const answer = await fetch(`${url}/accounts/${account}/${path}`, {
        headers: { ...bearer, "Content-Type": "application/json" },
        ...(body && { method: "POST", body: JSON.stringify(body) }),
      });
      return ((await answer.json()) as { result: R }).result;
    };
    const printed = await fetch(`${url}/accounts/${account}/browser-rendering/pdf`, {
      method: "POST",
      headers: { ...bearer, "Content-Type": "application/json" },
      body: JSON.stringify({ html: "<h1>Hello</h1>" }),
    });
    const bundle = JSON.parse(await readFile(join(dist, "gateway/console/console.json"), "utf8"));
    const program = await fetch(`${new URL(url).origin}/console/files/${bundle.script}`);
    expect(await program.text()).to.equal(
      bundle.files.find(({ name }: { name: string }) => name === bundle.script).text,
    );
    const pdf = Buffer.from(await printed.arrayBuffer());
    expect(pdf.subarray(0, 5).toString(), pdf.toString("latin1", 0, 300)).to.equal("%PDF-");
    environment = {
      ...environment,
      TRUNKLINE_API_URL: url,
      TRUNKLINE_API_TOKEN: token,
      TRUNKLINE_ACCOUNT_ID: account,
    };
    const deployed = await inWork("npx", [
      "trunkline",
      "deploy",
      "--config",
      "app/trunkline.jsonc",
    ]);
    const address = /http:\/\/localhost:\d+/.exec(deployed.stdout)?.[0];
    expect(address, deployed.stdout).to.be.a("string");
    const answer = await fetch(`${address}/`);
    expect(answer.status, await answer.text()).to.be.below(500);
    // These requests use modules that are loaded by path: the thread for Markdown, and the program that starts git.
    const page = site.page("/", "<h1>Heading</h1>");
    const options = { render: false, formats: ["markdown"], limit: 1 };
    const job = await asked<string>("browser-rendering/crawl", { url: page, ...options });
    const crawl = await until("the crawl ends", async () => {
      const found = await asked<{ status: string }>(`browser-rendering/crawl/${job}`);
      return found.status !== "running" && found;
    });
    expect(JSON.stringify(crawl)).to.include("# Heading");
    const repo = await asked<{ token: string; remote: string }>(
      "artifacts/namespaces/default/repos",
      { name: "hello" },
    );
    const git = (...words: string[]) =>
      inWork("git", [
        ...["-c", "user.name=Me", "-c", "user.email=me@example.com"],
        ...["-c", `http.extraHeader=Authorization: Bearer ${repo.token}`, ...words],
      ]);
    await git("init", "-q", "-b", "main", "hello");
    await git("-C", "hello", "commit", "-q", "--allow-empty", "-m", "First");
    await git("-C", "hello", "push", "-q", repo.remote, "main");
    await git("clone", "-q", repo.remote, "again");
    await platform.stop();
    expect(platform.lines.at(-1)).to.include("stopped");
  });

  /** Runs `npx trunkline start` in its own process group, as a terminal does. */
  function start() {
    const child: ChildProcess = spawn("npx", ["trunkline", "start"], {
      cwd: work,
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      ...USER,
    });
    const lines: string[] = [];
    const heard = new EventTarget();
    const closed = once(child, "close");
    for (const input of [child.stdout, child.stderr]) {
      if (!input) continue;
      createInterface({ input }).on("line", (line) => {
        lines.push(line);
        heard.dispatchEvent(new Event("line"));
      });
    }
    const signal = (name: NodeJS.Signals) => process.kill(-(child.pid ?? 0), name);
    return {
      lines,
      async line(text: string): Promise<void> {
        while (!lines.some((line) => line.includes(text))) {
          const ended = closed.then(() => {
            throw new Error(`Cannot find "${text}" in: ${lines.join("\n")}`);
          });
          await Promise.race([once(heard, "line"), ended]);
        }
      },
      /**
       * Stops the process group. The shell that npx starts receives the signal too, so its exit status has no
       * meaning.
       */
      async stop(): Promise<void> {
        signal("SIGINT");
        await closed;
      },
      async [Symbol.asyncDispose]() {
        try {
          signal("SIGKILL");
        } catch {
          // The process has ended.
        }
        await closed;
      },
    };
  }
});

/** Returns the settings with which programs of this machine reach package registries. */
function hostsSettings(): NodeJS.ProcessEnv {
  const names = Object.keys(process.env).filter((name) =>
    /^(pip_|npm_config_registry|npm_config_cafile|node_extra_ca|ssl_cert|https?_proxy|no_proxy)/i.test(
      name,
    ),
  );
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

/** Returns the package name of a module path: `@scope/name/file` becomes `@scope/name`. */
const packageOf = (name: string) =>
  name
    .split("/")
    .slice(0, name.startsWith("@") ? 2 : 1)
    .join("/");
