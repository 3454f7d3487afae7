import { execFile } from "node:child_process";
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
});
