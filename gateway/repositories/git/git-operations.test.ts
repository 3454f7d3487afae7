import { once } from "node:events";
import { request as send } from "node:http";
import { expect } from "chai";
import { addMeter } from "../../../schemas/meter.ts";
import { until } from "../../../scripts/testing/until.ts";
import { type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";

describe("counts of git operations", function () {
  this.timeout(60_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let repo: TestRepo;
  let counted: string[];
  let endMeter: () => void;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    repo = await world.repo();
  });
  after(() => world[Symbol.asyncDispose]());
  beforeEach(() => {
    counted = [];
    endMeter = addMeter({
      count(name, { operation, outcome }) {
        if (name === "git_operations_total") counted.push(`${operation} ${outcome}`);
      },
      time() {},
    });
  });
  afterEach(() => endMeter());

  /** Starts a request whose body stays open until the test ends or destroys it. */
  function begin(service: string, type = `application/x-${service}-request`) {
    const remote = new URL(gateway.remote(repo));
    const basic = Buffer.from(`${remote.username}:${remote.password}`).toString("base64");
    return send({
      ...{ host: remote.hostname, port: remote.port, method: "POST" },
      path: `${remote.pathname}/${service}`,
      headers: {
        Authorization: `Basic ${basic}`,
        "Content-Type": type,
        "Transfer-Encoding": "chunked",
        Expect: "100-continue",
      },
    });
  }

  for (const [operation, service] of [
    ["fetch", "git-upload-pack"],
    ["push", "git-receive-pack"],
  ] as const) {
    it(`a client that hangs up has left, and nothing has failed (${operation})`, async () => {
      const request = begin(service);
      request.on("error", () => {});
      // The gateway waits for the body.
      await once(request, "continue");
      request.destroy();
      await until("it is counted", () => counted.length > 0);
      expect(counted).to.deep.equal([`${operation} left`]);
    });
  }

  it("counts what is done, and what is refused", async () => {
    const work = await world.checkout();
    await work.commit("one");
    await work.git("push", "-q", gateway.remote(repo), "main");
    await until("it is counted", () => counted.length > 0);
    expect(new Set(counted)).to.deep.equal(new Set(["push done"]));
    counted = [];
    const refused = begin("git-receive-pack", "text/plain");
    refused.end();
    const [response] = await once(refused, "response");
    expect(response.statusCode).to.equal(415);
    response.resume();
    await until("it is counted", () => counted.length > 0);
    expect(counted).to.deep.equal(["push refused"]);
  });
});
