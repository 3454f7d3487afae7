import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { accountActor } from "../actors/account/account/account.ts";
import { apiTokenActor } from "../actors/account/api-token/api-token.ts";
import { installationActor } from "../actors/account/installation/installation.ts";
import { requestLimitActor } from "../actors/account/request-limit/request-limit.ts";
import { userActor } from "../actors/account/user/user.ts";
import { browserTimeActor } from "../actors/rendering/browser-time/browser-time.ts";
import { type BusActors, busActors } from "../scripts/testing/bus-actors.ts";
import { type RunningGateway, startGateway } from "./main.ts";
import { testCrawls } from "./testing/test-crawls.ts";
import { testConfig } from "./testing/test-gateway.ts";
import { CHUNK, type TestPrinter, testPrinter } from "./testing/test-printer.ts";

describe("gateway on the bus", function () {
  this.timeout(60_000);
  let bus: BusActors;
  let printer: TestPrinter;
  let gateways: RunningGateway[];
  let dataDir: string;
  let token: string;
  let base: string;
  before(async () => {
    printer = testPrinter();
    const crawls = testCrawls();
    bus = await busActors({
      actors: [
        ...[accountActor, apiTokenActor, browserTimeActor],
        ...[installationActor, requestLimitActor, userActor],
      ],
      workers: [printer.worker],
    });
    dataDir = await mkdtemp(join(tmpdir(), "gateway-"));
    // Three gateways make their first start at the same time, as in a new cluster.
    gateways = await Promise.all(
      ["a", "b", "c"].map((name) =>
        startGateway({
          actors: bus.actors,
          blobs: crawls.blobs,
          live: crawls.live,
          secrets: crawls.secrets,
          config: { ...testConfig, dataDir: join(dataDir, name), requestsPerWindow: 1_000 },
          logger: pino({ level: "fatal" }),
        }),
      ),
    );
    const files = await Promise.allSettled(
      ["a", "b", "c"].map((name) => readFile(join(dataDir, name, "credentials.json"), "utf8")),
    );
    const written = files.flatMap((file) => (file.status === "fulfilled" ? [file.value] : []));
    expect(written).to.have.length(1);
    const credentials = JSON.parse(written[0] ?? "");
    token = credentials.api_token;
    base = `http://127.0.0.1:${gateways[0]?.port}/v4/accounts/${credentials.account_id}`;
  });
  after(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await bus.stop();
    await rm(dataDir, { recursive: true });
  });

  const ask = async (path: string, method = "GET", json?: unknown, bearer = token) => {
    const response = await fetch(base + path, {
      method,
      headers: { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    return response;
  };
  const print = (html: string) => ask("/browser-rendering/pdf", "POST", { html });

  it("makes, lists and revokes tokens", async () => {
    const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
    const created = await ask("/tokens", "POST", { name: "ci", policies });
    expect(created.status).to.equal(200);
    expect(created.headers.get("ratelimit")).to.match(/^"default";r=\d+;t=300$/);
    const { result } = (await created.json()) as { result: { id: string; value: string } };
    expect((await ask("/tokens", "GET", undefined, result.value)).status).to.equal(200);
    expect((await ask(`/tokens/${result.id}`, "DELETE")).status).to.equal(200);
    expect((await ask("/tokens", "GET", undefined, result.value)).status).to.equal(401);
  });

  it("streams a PDF of many chunks whole", async () => {
    const response = await print("chunks 50");
    expect(response.headers.get("x-browser-ms-used")).to.equal("34");
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.equals(Buffer.concat(Array(50).fill(CHUNK)))).to.equal(true);
  });

  it("takes a page larger than a message of the bus", async () => {
    const html = `<p>${"x".repeat(5_000_000)}</p>`;
    const response = await print(html);
    expect(response.status).to.equal(200);
    expect(await response.text()).to.contain(html);
  });

  it("answers a worker's refusal with its browser time", async () => {
    const response = await print("refuse wait_timed_out");
    expect(response.status).to.equal(422);
    expect(response.headers.get("x-browser-ms-used")).to.equal("12");
    expect(await response.json()).to.deep.include({
      errors: [{ code: 6002, message: "Cannot print: wait_timed_out" }],
    });
  });

  it("takes a task back when its client hangs up", async () => {
    const client = request(`${base}/browser-rendering/pdf`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    });
    client.end(JSON.stringify({ html: "chunks 10000" }));
    const [response] = await once(client, "response");
    await once(response, "readable");
    response.destroy();
    await printer.cancelled;
    expect(printer.taken).to.be.below(5_000);
  });

  it("shows the account's usage", async () => {
    const response = await ask("/browser-rendering/usage");
    expect(await response.json()).to.have.nested.property("result.browser_ms_used", 0);
  });
});
