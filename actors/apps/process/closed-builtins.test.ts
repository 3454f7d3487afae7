import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { REPOSITORY } from "../../../scripts/tools.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";

/** Code that libraries commonly run with built-in modules while they load. */
const LIBRARY = `
import fs, { promises, readFile as read } from "node:fs";
import * as http from "http";
import { Agent as SecureAgent, globalAgent } from "node:https";
import { Socket } from "node:net";
import { spawn } from "node:child_process?importer=%40some%2Flibrary";
import { promisify, inherits } from "node:util";
import { createRequire } from "node:module";
import os from "node:os";
import { isatty } from "node:tty";
import { performance as clock } from "node:perf_hooks";
import channels from "node:diagnostics_channel";
import { Agent, callable } from "trunkline/agents";

const { constants: { O_RDONLY }, existsSync = () => false } = fs;
const { METHODS, STATUS_CODES } = http;
const readLater = promisify(read);
class Pool extends SecureAgent { constructor() { super({ keepAlive: true }); } }
function Old() {} inherits(Old, http.OutgoingMessage);
Old.prototype.write = () => "written";
const required = createRequire(import.meta.url)("fs");
fs.gracefulify = true;
globalAgent.maxSockets = 5;
const heard = [];
channels.subscribe("http.client.request.start", (message) => heard.push(message));
const channel = channels.channel("mine");
const harmless = [os.platform() === process.platform, os.hostname(), os.cpus(), os.EOL, isatty(1), clock.now() > 0, channel.hasSubscribers,
  channel.runStores({}, function (a) { return [this, a]; }, 1, 2).map(Number), channels.tracingChannel("t").traceSync((a) => a, {}, null, 3)];
const uses = {
  read: () => read("a"), later: () => readLater("a"), nested: () => promises.readFile("a"), pool: () => new Pool(),
  socket: () => new Socket(), method: () => fs["exists" + "Sync"]("a"), spawn: () => spawn("ls"), agent: () => globalAgent.destroy(),
  required: () => required.readFileSync("a"),
};
export class User extends Agent<any, any> {
  loaded() {
    return [O_RDONLY, METHODS.includes("GET"), STATUS_CODES[404], typeof existsSync, new Old().write(),
      new Old() instanceof http.OutgoingMessage, SecureAgent.name, required.gracefulify === undefined];
  }
  harmless() { return [...harmless, heard]; }
  async use(name: keyof typeof uses) {
    try { return await uses[name](); } catch (error: any) { return [error.code, error.message]; }
  }
}
`;

describe("closed built-in modules", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  before(async () => {
    host = await MemoryHost.start({
      code: LIBRARY,
      agents: [{ binding: "User", className: "User" }],
    });
  });
  after(() => host?.stop());

  it("load with everything that libraries read, destructure, extend and change while they load", async () => {
    expect(await host.invoke("User/u", "loaded")).to.deep.equal([
      ...[0, true, "Not Found", "function", "written", true, "Agent", true],
    ]);
  });

  it("answer the calls of libraries while they load, without a look at the machine", async () => {
    expect(await host.invoke("User/u", "harmless")).to.deep.equal([
      ...[true, "localhost", [], "\n", false, true, false, [1, 2], 3, []],
    ]);
  });

  for (const [name, used] of Object.entries({
    read: "readFile of node:fs:",
    later: "readFile of node:fs:",
    nested: "promises.readFile of node:fs:",
    pool: "Agent of node:https:",
    socket: "Socket of node:net:",
    method: "existsSync of node:fs:",
    agent: "globalAgent.destroy of node:https:",
    required: "readFileSync of node:fs:",
    spawn: "spawn of node:child_process, which @some/library imports:",
  })) {
    it(`refuse to be used (${name}), and name the function, its module and the importing package`, async () => {
      const [code, message] = (await host.invoke("User/u", "use", name)) as string[];
      expect(code).to.equal("ERR_ACCESS_DENIED");
      expect(message).to.match(/: apps may use the modules assert, .*, zlib$/);
      expect(message).to.include(`Cannot use ${used}`);
    });
  }

  it("have the names of the Node that runs", async () => {
    const script = join(REPOSITORY, "scripts/describe-builtins/main.ts");
    const { stdout } = await promisify(execFile)(process.execPath, [script]);
    const stored = await readFile(join(import.meta.dirname, "closed-builtins.jsonl"), "utf8");
    // Constants of the operating system have different values on different platforms, so their values are ignored.
    const names = (text: string) => text.replaceAll(/-?\d+|"EOL":"[^"]*"/g, "0");
    expect(names(stdout)).to.equal(names(stored));
  });
});
