// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are code of apps.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { MemoryHost, RefusedTurn } from "../package/testing/memory-host.ts";

/** An app that runs the code of each attempt with a value from the test, and reports the result or the error. */
const APP = (attempts: Record<string, string>, head = "") => `
import { Agent, callable } from "trunkline/agents";
${head}
const attempts = {
${Object.entries(attempts)
  .map(([name, body]) => `${JSON.stringify(name)}: async (given, agent) => { ${body} }`)
  .join(",\n")}
};
export class Prisoner extends Agent<any, any> {
  async attempt(name: string, given: any) {
    try {
      return { did: String((await (attempts as any)[name](given, this)) ?? "nothing") };
    } catch (error: any) {
      return { refused: String(error?.message ?? error) };
    }
  }
}
`;

const FORBIDDEN = [
  "child_process",
  "cluster",
  "dgram",
  "diagnostics_channel",
  "dns",
  "dns/promises",
  "fs",
  "fs/promises",
  "http",
  "http2",
  "https",
  "inspector",
  "inspector/promises",
  "net",
  "os",
  "perf_hooks",
  "readline",
  "repl",
  "sqlite",
  "test",
  "tls",
  "trace_events",
  "tty",
  "v8",
  "vm",
  "wasi",
  "worker_threads",
];

/** Functions whose results do not depend on the machine: see harmless-builtins.ts. */
const HARMLESS: Record<string, string[]> = {
  diagnostics_channel: ["channel", "hasSubscribers", "subscribe", "tracingChannel", "unsubscribe"],
  os: "arch availableParallelism cpus endianness freemem homedir hostname loadavg networkInterfaces platform release tmpdir totalmem type uptime version".split(
    " ",
  ),
  perf_hooks: ["performance"],
  tty: ["isatty"],
};

/** Uses every object and function that can be reached from the module. Each use must be refused. */
const useEverything = (name: string) => `
  const harmless = ${JSON.stringify(HARMLESS[name] ?? [])};
  const found = [];
  const seen = new Set();
  const use = (path, attempt) => {
    try { attempt(); found.push(path + " did something"); }
    catch (error) { if (error.code !== "ERR_ACCESS_DENIED") found.push(path + ": " + error.message); }
  };
  const walk = (value, path) => {
    if (value === null || !["object", "function"].includes(typeof value) || seen.has(value)) return;
    seen.add(value);
    const isTop = value === module || value === module.default;
    const isFunction = typeof value === "function";
    const prototypes = isFunction ? [Function.prototype] : [Object.prototype, Array.prototype, null];
    if (!prototypes.includes(Object.getPrototypeOf(value))) found.push(path + " is of a class");
    if (isFunction) {
      use(path, () => value("a", () => {}));
      use("new " + path, () => new value("a"));
      use("a class that extends " + path, () => new (class extends value {})());
    }
    for (const key of Reflect.ownKeys(value)) {
      if (isTop && harmless.includes(key)) continue;
      const { get, set, value: one } = Object.getOwnPropertyDescriptor(value, key);
      if (get || set) found.push(path + "." + String(key) + " is an accessor");
      walk(one, path + "." + String(key));
    }
  };
  walk(module, "module");
  if (found.length > 0) return found.join();
  throw new Error("nothing");`;

const ATTEMPTS: Record<string, string> = {
  ...Object.fromEntries(
    FORBIDDEN.flatMap((name) => [
      [
        `to use node:${name}`,
        `const module = await import("node:" + "${name}"); ${useEverything(name)}`,
      ],
      [
        `to use a required node:${name}`,
        `const { createRequire } = await import("node:module"); const module = createRequire(import.meta.url)("node:${name}"); ${useEverything(name)}`,
      ],
    ]),
  ),
  "import a file": "return (await import(given.file)).default;",
  "import the platform's own code": "return Object.keys(await import(given.own));",
  "import over data:": "return (await import(given.module)).default;",
  "require a file by node:module":
    'const { createRequire } = await import("node:module"); return createRequire(import.meta.url)(given.file);',
  "import by the scheme of closed modules":
    "return Object.keys(await import('trunkline-closed:' + JSON.stringify(['fs'])));",
  "import what stands for closed modules": "return Object.keys(await import(given.closed));",
  "process.getBuiltinModule": 'return Object.keys(process.getBuiltinModule("fs"));',
  "process.binding": 'return Object.keys(process.binding("fs"));',
  "process.dlopen": "return process.dlopen({ exports: {} }, given.file);",
  "signal the parent": "return process.kill(given.parent, 0);",
  "process.exit": "return process.exit(3);",
  "process.send": 'return process.send({ type: "ready", classes: [], hasEntry: false });',
  eval: `return eval("1 + 1");`,
  "new Function": `return new Function("return 1 + 1")();`,
  "the constructor of async functions": `return await (async () => 0).constructor("return 1 + 1")();`,
  "eval by a timer":
    'setTimeout(eval, 1, "globalThis.evaluated = 1"); await new Promise((resolve) => setTimeout(resolve, 30)); if (globalThis.evaluated) return "ran"; throw new Error("none");',
  WebSocket: "return new WebSocket(given.socket);",
  EventSource: "return new EventSource(given.address);",
  "ATTACH a file": "return agent.sql`ATTACH ${given.file} AS x`.length;",
  "VACUUM INTO a file": "return agent.sql`VACUUM INTO ${given.target}`.length;",
  load_extension: "return agent.sql`SELECT load_extension(${given.file})`.length;",
  "the platform's tables": "return agent.sql`SELECT * FROM _trunkline_values`.length;",
  "write the platform's tables": "return agent.sql`DELETE FROM _trunkline_answered`.length;",
  "a trigger on the platform's tables":
    "return agent.sql`CREATE TRIGGER r AFTER INSERT ON _trunkline_values BEGIN SELECT 1; END`.length;",
  "a trigger that writes the platform's tables":
    "agent.sql`CREATE TABLE IF NOT EXISTS mine (v)`; agent.sql`CREATE TRIGGER IF NOT EXISTS r AFTER INSERT ON mine BEGIN DELETE FROM _trunkline_values; END`; return agent.sql`INSERT INTO mine VALUES (1)`.length;",
  "raw pages": "return agent.sql`SELECT * FROM sqlite_dbpage`.length;",
  writable_schema: "return agent.sql`PRAGMA writable_schema = ON`.length;",
  journal_mode: "return agent.sql`PRAGMA journal_mode = DELETE`.length;",
  "the database by a changed prototype": `
    const found = [];
    const { get } = Map.prototype;
    Map.prototype.get = function (key) { found.push(this); return get.call(this, key); };
    try { agent.sql\`SELECT 1\`; await agent.ctx.storage.get("a"); } finally { Map.prototype.get = get; }
    for (const map of found) for (const value of map.values()) {
      if (value && value.constructor && value.constructor !== Object && /Sync/.test(value.constructor.name)) return value.constructor.name;
    }
    throw new Error("none");`,
  "the process by a changed emitter": `
    const { EventEmitter } = await import("node:events");
    const { emit } = EventEmitter.prototype;
    const seen = [];
    EventEmitter.prototype.emit = function (...args) { seen.push(this); return emit.apply(this, args); };
    await agent.ctx.storage.sync(); agent.sql\`CREATE TABLE IF NOT EXISTS e (v)\`; await agent.ctx.storage.sync();
    await new Promise((resolve) => setTimeout(resolve, 20));
    EventEmitter.prototype.emit = emit;
    for (const one of seen) if (typeof one.getBuiltinModule === "function" || typeof one.kill === "function" || typeof one.send === "function") return "got it";
    throw new Error("none");`,
  "the process by a getter that all objects have": `
    const { Buffer } = await import("node:buffer");
    let seen;
    const get = function () { if (typeof this.reallyExit === "function") seen = this; };
    for (const name of ["noDeprecation", "throwDeprecation"]) Object.defineProperty(Object.prototype, name, { get, configurable: true });
    try { new Buffer(1); await new Promise((resolve) => setTimeout(resolve, 20)); } finally { for (const name of ["noDeprecation", "throwDeprecation"]) delete Object.prototype[name]; }
    if (seen) return "got it";
    throw new Error("none");`,
  "what follows calls by a changed class": `
    const { AsyncLocalStorage } = await import("node:async_hooks");
    const { getStore } = AsyncLocalStorage.prototype;
    const seen = [];
    AsyncLocalStorage.prototype.getStore = function () { const store = getStore.call(this); seen.push(store); return store; };
    try { console.log("x"); await fetch("data:text/plain,x"); } finally { AsyncLocalStorage.prototype.getStore = getStore; }
    if (seen.some((store) => store?.open)) return "got it";
    throw new Error("none");`,
  "ATTACH a file by the database itself": `
    const { get } = Map.prototype;
    let open;
    Map.prototype.get = function (key) { const value = get.call(this, key); open ??= value?.agent?.database && value.agent; return value; };
    try { agent.sql\`CREATE TABLE IF NOT EXISTS attached (v)\`; agent.sql\`INSERT INTO attached VALUES (1)\`; await agent.ctx.storage.sync(); } finally { Map.prototype.get = get; }
    const statement = "ATTACH '" + given.target + "' AS x";
    const tries = [
      () => open.database.own(statement),
      () => open.database.log.database.exec(statement),
      () => { open.database.log.database.setAuthorizer(null); open.database.log.database.exec(statement); },
    ];
    for (const attempt of tries) try { attempt(); return "attached"; } catch {}
    throw new Error("none");`,
  "the environment":
    'const { env } = process; if (Object.keys(env).length > 0) return Object.keys(env); throw new Error("none");',
};

describe("isolation of an app's process", function () {
  this.timeout(120_000);
  const folder = mkdtempSync(join(tmpdir(), "trunkline-secret-"));
  const file = join(folder, "secret.mjs");
  writeFileSync(file, 'export default "the secret";');
  let host: MemoryHost;
  let server: Server;
  let address: string;
  let hits = 0;

  before(async () => {
    server = createServer((_request, response) => {
      hits += 1;
      response.end("reached");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    host = await MemoryHost.start({
      code: APP(ATTEMPTS),
      agents: [{ binding: "Prisoner", className: "Prisoner" }],
    });
  });
  after(async () => {
    await host.stop();
    server.close();
    rmSync(folder, { recursive: true });
  });

  for (const name of Object.keys(ATTEMPTS)) {
    it(`refuses ${name}`, async () => {
      const result = await host.invoke("Prisoner/p", "attempt", name, {
        file,
        target: join(folder, "copy.db"),
        own: new URL("./agent-database.ts", import.meta.url).href,
        closed: new URL("./closed-builtins.ts", import.meta.url).href,
        parent: process.pid,
        address,
        module: "data:text/javascript,export default 1",
        socket: address.replace("http", "ws"),
      });
      expect(result, JSON.stringify(result)).to.have.property("refused");
    });
  }

  it("fetch() goes to the host and never to the network", async () => {
    const other = await MemoryHost.start({
      code: APP({ fetch: "return await (await fetch(given.address)).text();" }),
      agents: [{ binding: "Prisoner", className: "Prisoner" }],
      operate: async () => ({
        type: "answer",
        answer: { status: 200, headers: [], body: Buffer.from("by the host") },
      }),
    });
    try {
      const result = await other.invoke("Prisoner/p", "attempt", "fetch", { address });
      expect(result).to.deep.equal({ did: "by the host" });
      expect(other.operations.map(({ type }) => type)).to.deep.equal(["fetch"]);
      expect(hits).to.equal(0);
    } finally {
      await other.stop();
    }
  });

  for (const [name, head] of Object.entries({
    "a package that is not in the bundle":
      'const x = await import(["left", "pad"].join("-")); console.log(x);',
  })) {
    it(`does not start with ${name}`, async () => {
      let error: unknown;
      try {
        await (await MemoryHost.start({ code: APP({}, head) })).stop();
      } catch (thrown) {
        error = thrown;
      }
      expect(error).to.be.instanceOf(RefusedTurn);
      expect((error as RefusedTurn).message).to.match(/^Cannot import/);
    });
  }

  it("open modules and the globals that libraries look at exist", async () => {
    const head = `
      import { createHmac } from "node:crypto";
      import { Buffer as B } from "buffer";
      import { AsyncLocalStorage } from "node:async_hooks";
      import process, { nextTick } from "node:process";
      import { createRequire } from "node:module";`;
    const open = await MemoryHost.start({
      code: APP(
        {
          use: `
          const local = new AsyncLocalStorage();
          await new Promise((resolve) => nextTick(resolve));
          const { EventEmitter } = createRequire(import.meta.url)("events");
          return [createHmac("sha256", "k").update(B.from("a")).digest("hex").length, local.run(3, () => local.getStore()),
            typeof EventEmitter, process.version.slice(0, 1), new Date(0).getTimezoneOffset()].join();`,
        },
        head,
      ),
    });
    try {
      expect(await open.invoke("Prisoner/p", "attempt", "use", {})).to.deep.equal({
        did: "64,3,function,v,0",
      });
    } finally {
      await open.stop();
    }
  });
});
