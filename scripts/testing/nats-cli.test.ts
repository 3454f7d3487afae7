import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { natsCli } from "./nats-cli.ts";
import { startNats } from "./nats-server.ts";

describe("nats CLI", function () {
  this.timeout(900_000); // The first build compiles a few hundred packages.

  it("natsCli() returns a program that connects to a test's server", async function () {
    const cli = await natsCli();
    if (cli === undefined) return this.skip();
    await using server = await startNats();
    const { stdout } = await promisify(execFile)(cli, ["-s", server.url, "stream", "ls"]);
    expect(stdout).to.include("No Streams defined");
  });

  it("natsCli() is built from the version of nats-server that scripts/setup builds", async () => {
    const textOf = (path: string) => readFile(join(import.meta.dirname, path), "utf8");
    const [, built] = /^NATS_SERVER=(\S+)/m.exec(await textOf("../setup")) ?? [];
    const required = /\sgithub\.com\/nats-io\/nats-server\/v2 v(\S+)/;
    const [, version] = required.exec(await textOf("natscli/go.mod")) ?? [];
    // Go then takes the packages of nats-server from its cache.
    expect(version).to.be.a("string").and.to.equal(built);
  });
});
