import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { AppScene } from "../../scripts/testing/app-scene.ts";
import { until } from "../../scripts/testing/until.ts";

/** Calls a server outside for each request, and continues when that server has answered. */
const CODE = `
export default {
  async fetch(request, env) {
    const answer = await fetch(env.OUTSIDE + new URL(request.url).pathname, { method: request.method });
    return new Response(await answer.text());
  },
};
`;

describe("requests to an app whose host is killed", function () {
  this.timeout(900_000);
  let scene: AppScene;
  let outside: Server;
  const asked: { what: string; response: ServerResponse }[] = [];
  before(async () => {
    outside = createServer((request, response) => {
      asked.push({ what: `${request.method} ${request.url}`, response });
    });
    await once(outside.listen(0, "127.0.0.1"), "listening");
    scene = await AppScene.start();
    const vars = { OUTSIDE: `http://127.0.0.1:${(outside.address() as AddressInfo).port}` };
    const { status, body } = await scene.platform.deploy("asking", CODE, { vars });
    expect(status, JSON.stringify(body)).to.equal(200);
    // Kills one host, so that the other host owns all shards.
    const [first] = scene.hosts;
    if (first) await scene.killHost(first);
  });
  after(async () => {
    for (const { response } of asked) response.destroy();
    await scene?.[Symbol.asyncDispose]();
    await new Promise((resolve) => outside.close(resolve));
  });

  const seen = (what: string) => asked.filter((one) => one.what === what);

  async function loseHost(): Promise<void> {
    const [host] = scene.hosts;
    if (!host) throw new Error("no host is left");
    await scene.killHost(host);
    await scene.addHost();
  }

  it("are not repeated if that could have two effects: the answer says so instead", async () => {
    const told = scene.platform.ask("asking", "/pay", { method: "POST", body: "1" });
    await until("it is under way", () => seen("POST /pay").length === 1, 120_000);
    await loseHost();
    const { status, text } = await told;
    expect([status, JSON.parse(text).errors[0].code]).to.deep.equal([502, 11003]);
    expect(seen("POST /pay")).to.have.length(1);
    // A new request with the same body is a separate request, so it is executed.
    const again = scene.platform.ask("asking", "/pay", { method: "POST", body: "1" });
    await until("it is run", () => seen("POST /pay").length === 2, 120_000);
    seen("POST /pay")[1]?.response.end("paid");
    expect((await again).text).to.equal("paid");
  });

  it("are repeated if that cannot have two effects", async () => {
    const told = scene.platform.ask("asking", "/look");
    await until("it is under way", () => seen("GET /look").length === 1, 120_000);
    await loseHost();
    await until("it is under way again", () => seen("GET /look").length === 2, 120_000);
    seen("GET /look")[1]?.response.end("seen");
    expect(await told).to.include({ status: 200, text: "seen" });
  });

  it("are run by the next host if no code has run yet", async () => {
    const [host] = scene.hosts;
    if (host) await scene.killHost(host);
    const told = scene.platform.ask("asking", "/late", { method: "POST", body: "1" });
    await scene.addHost();
    await until("it is under way", () => seen("POST /late").length === 1, 120_000);
    seen("POST /late")[0]?.response.end("done");
    expect(await told).to.include({ status: 200, text: "done" });
    expect(seen("POST /late")).to.have.length(1);
  });
});
