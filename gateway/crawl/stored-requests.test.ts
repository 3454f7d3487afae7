import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { crawlRequestBlob, sealedKeyOf } from "../../schemas/crawl/stored-request.ts";
import { storedTexts, textsWith } from "../../scripts/testing/stored-texts.ts";
import { until } from "../../scripts/testing/until.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";
import { type RunningGateway, startGateway } from "../main.ts";
import { crawlBus } from "../testing/crawl-bus.ts";
import { testConfig } from "../testing/test-gateway.ts";

const PLANTED = ["cookie", "password", "header", "authorization"].map((name) => `planted-${name}`);
const [COOKIE = "", PASSWORD = "", HEADER = "", AUTHORIZATION = ""] = PLANTED;

describe("stored requests of crawls", function () {
  this.timeout(60_000);
  let bus: Awaited<ReturnType<typeof crawlBus>>;
  let gateway: RunningGateway;
  let site: WebSite;
  let dataDir: string;
  let crawls: string;
  let headers: Record<string, string>;
  const lines: string[] = [];
  before(async () => {
    const logger = pino({ level: "trace" }, { write: (line) => lines.push(line) });
    bus = await crawlBus(logger);
    site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    dataDir = await mkdtemp(join(tmpdir(), "gateway-"));
    gateway = await startGateway({ ...bus, config: { ...testConfig, dataDir }, logger });
    const credentials = JSON.parse(await readFile(join(dataDir, "credentials.json"), "utf8"));
    headers = {
      Authorization: `Bearer ${credentials.api_token}`,
      "Content-Type": "application/json",
    };
    crawls = `http://127.0.0.1:${gateway.port}/v4/accounts/${credentials.account_id}/browser-rendering/crawl`;
  });
  after(async () => {
    await gateway?.stop();
    await bus?.stop();
    await site?.[Symbol.asyncDispose]();
    await rm(dataDir, { recursive: true });
  });

  it("hold no credentials in readable form, and the site receives them", async () => {
    const received = Promise.withResolvers<NodeJS.Dict<string | string[]>>();
    const hanging = site.page("/credentials", (request) => received.resolve(request.headers));
    const response = await fetch(crawls, {
      method: "POST",
      headers,
      body: JSON.stringify({
        url: hanging,
        ...{ render: false, maxAge: 100, source: "links", formats: ["html", "json"] },
        cookies: [{ name: "session", value: COOKIE, url: hanging }],
        authenticate: { username: "user", password: PASSWORD },
        setExtraHTTPHeaders: { "X-Opens": HEADER },
        jsonOptions: {
          prompt: "All prices",
          custom_ai: [{ model: "openai/gpt-4o", authorization: `Bearer ${AUTHORIZATION}` }],
        },
      }),
    });
    const { result: id, errors } = (await response.json()) as { result: string; errors: unknown };
    expect(response.status, JSON.stringify(errors)).to.equal(200);
    const got = await received.promise;
    expect([got.cookie, got["x-opens"]]).to.deep.equal([`session=${COOKIE}`, HEADER]);
    // The page does not answer, so the stored request is still needed.
    const stored = Buffer.concat(await Array.fromAsync(bus.blobs.get(crawlRequestBlob(id))));
    expect(sealedKeyOf(stored)).to.match(/^v1\./);
    const texts = [...(await storedTexts(bus.bus)), ...lines];
    expect(texts.filter((text) => text.includes(id))).to.have.length.above(3);
    for (const secret of PLANTED) expect(textsWith(secret, texts), secret).to.deep.equal([]);

    const cancelled = await fetch(`${crawls}/${id}`, { method: "DELETE", headers });
    expect(cancelled.status).to.equal(200);
    const isKept = () => bus.blobs.has(crawlRequestBlob(id));
    await until("its request to be removed", async () => !(await isKept()));
  });
});
