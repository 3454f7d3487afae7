import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import Cloudflare from "cloudflare";
import { PAGE_CALLS } from "../../schemas/rendering/http/page-calls.ts";
import { openPageReader, type PageReader } from "../../scripts/testing/page-reader.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";
import { REPOSITORY } from "../../scripts/tools.ts";
import { type TestGateway, testGateway } from "../testing/test-gateway.ts";

const UNKNOWN = "0".repeat(32);
const HTML = "<h1>Hello</h1>";

interface Called {
  sdk: Cloudflare;
  account_id: string;
}

const LAMP = { name: "Desk lamp", price: 12.5 };

/** Every rendering method of the public SDK that the platform offers, with a call as users write it. */
const OFFERED: Record<string, (called: Called) => Promise<void>> = {
  async "pdf.create"({ sdk, account_id }) {
    const pdf = await sdk.browserRendering.pdf.create({ account_id, html: HTML, cacheTTL: 0 });
    expect(pdf.headers.get("content-type")).to.equal("application/pdf");
    expect(await pdf.text()).to.match(/^%PDF-/);
    const wrong = { account_id, html: HTML, url: "https://example.com" };
    const refused = await errorOf(sdk.browserRendering.pdf.create(wrong));
    expect([refused.status, refused.errors[0]?.code]).to.deep.equal([400, 1_001]);
  },
  async "screenshot.create"({ sdk, account_id }) {
    const options = { account_id, html: HTML, screenshotOptions: { type: "jpeg" as const } };
    const taken = await sdk.browserRendering.screenshot.create(options).asResponse();
    expect(taken.headers.get("content-type")).to.equal("image/jpeg");
    const encoded = { ...options, screenshotOptions: { encoding: "base64" as const } };
    const text = await sdk.browserRendering.screenshot.create(encoded);
    expect(text).to.match(/^iVBOR/);
  },
  async "content.create"({ sdk, account_id }) {
    const html = await sdk.browserRendering.content.create({ account_id, html: HTML, cacheTTL: 0 });
    expect(html).to.contain(HTML);
    const raw = await sdk.browserRendering.content.create({ account_id, html: HTML }).asResponse();
    const { success, meta, result } = (await raw.json()) as Record<string, unknown>;
    expect([success, meta, result]).to.deep.equal([true, { status: null, title: "" }, html]);
    expect(Number(raw.headers.get("x-browser-ms-used"))).to.be.above(0);
  },
  async "markdown.create"({ sdk, account_id }) {
    const page = { account_id, html: `<title>T</title>${HTML}` };
    const text = await sdk.browserRendering.markdown.create(page);
    expect(text).to.equal('---\ntitle: "T"\n---\n\n# Hello\n');
  },
  async "links.create"({ sdk, account_id }) {
    const html = `<a href="https://example.com/a">a</a>`;
    const options = { excludeExternalLinks: false, visibleLinksOnly: true };
    const found = await sdk.browserRendering.links.create({ account_id, html, ...options });
    expect(found).to.deep.equal(["https://example.com/a"]);
  },
  async "scrape.create"({ sdk, account_id }) {
    const elements = [{ selector: "h1" }];
    const [found] = await sdk.browserRendering.scrape.create({ account_id, html: HTML, elements });
    expect(found?.selector).to.equal("h1");
    // The result is an array, although the type of the SDK says otherwise.
    const results = found?.results as unknown as { text: string; attributes: unknown[] }[];
    expect(results).to.have.length(1);
    expect(results[0]).to.deep.include({ text: "Hello", html: "Hello", attributes: [] });
    const wrong = { account_id, html: HTML, elements: [{ selector: "##" }] };
    const refused = await errorOf(sdk.browserRendering.scrape.create(wrong));
    expect([refused.status, refused.errors[0]?.code]).to.deep.equal([400, 1_001]);
  },
  async "snapshot.create"({ sdk, account_id }) {
    const formats = ["content", "screenshot", "markdown", "accessibilityTree"] as const;
    const options = { account_id, html: HTML, screenshotOptions: { type: "webp" as const } };
    const taken = await sdk.browserRendering.snapshot.create({ ...options, formats: [...formats] });
    expect(Object.keys(taken).toSorted()).to.deep.equal(formats.toSorted());
    expect(Buffer.from(taken.screenshot ?? "", "base64").toString("latin1", 8, 12)).to.equal(
      "WEBP",
    );
    expect(taken.accessibilityTree?.role).to.equal("RootWebArea");
  },
  async "json.create"({ sdk, account_id }) {
    const json_schema = { type: "object", properties: { price: { type: "number" } } };
    const options = {
      ...{ account_id, html: HTML, prompt: "The price" },
      response_format: { type: "json_schema", json_schema },
      custom_ai: [{ model: "openai/m", authorization: "Bearer key" }],
    };
    expect(await sdk.browserRendering.json.create(options)).to.deep.equal(LAMP);
    const response_format = { type: "json_schema", json_schema: null };
    const any = await sdk.browserRendering.json.create({ ...options, response_format });
    expect(any).to.deep.equal(LAMP);
    const unanswered = { ...options, custom_ai: [{ model: "google/m" }] };
    const refused = await errorOf(sdk.browserRendering.json.create(unanswered));
    expect([refused.status, refused.errors[0]?.code]).to.deep.equal([422, 6_005]);
  },
  async "accessibilityTree.create"({ sdk, account_id }) {
    const { accessibilityTree } = sdk.browserRendering;
    const root = { account_id, html: HTML, root: "h1", interestingOnly: true };
    const found = await accessibilityTree.create(root);
    expect(found.accessibilityTree).to.deep.include({ role: "heading", name: "Hello", level: 1 });
    const none = await accessibilityTree.create({ ...root, root: "h2" });
    expect(none).to.deep.equal({ accessibilityTree: null });
  },
  async "crawl.create"({ sdk, account_id }) {
    const id = await sdk.browserRendering.crawl.create({ account_id, url: "https://example.com" });
    expect(id).to.match(/^[0-9a-f]{32}$/);
  },
  async "crawl.get"({ sdk, account_id }) {
    const { crawl } = sdk.browserRendering;
    const id = await crawl.create({ account_id, url: "https://example.com" });
    const found = await crawl.get(id, { account_id, limit: 1, status: "completed" });
    expect(found).to.include({ id, total: 1, finished: 0 });
    expect(found.records).to.deep.equal([]);
    expect((await errorOf(crawl.get(UNKNOWN, { account_id }))).status).to.equal(404);
  },
  async "crawl.delete"({ sdk, account_id }) {
    const { crawl } = sdk.browserRendering;
    const id = await crawl.create({ account_id, url: "https://example.com" });
    expect(await crawl.delete(id, { account_id })).to.have.property("job_id", id);
    expect((await errorOf(crawl.delete(UNKNOWN, { account_id }))).status).to.equal(404);
  },
};

/**
 * Methods that are not offered by this gateway. They get 404 with code 1004, because the path does not exist. Those
 * of `devtools` need a browser worker, which this gateway lacks; devtools-clients.faults.test.ts tests them.
 */
const NOT_OFFERED = [
  ...["session.list", "session.get"],
  ...["create", "delete", "connect", "launch", "protocol", "version"].map(
    (name) => `browser.${name}`,
  ),
  ...["liveView.create", "page.get"].map((name) => `browser.${name}`),
  ...["create", "list", "activate", "close", "get"].map((name) => `browser.targets.${name}`),
].map((name) => (/^(session|browser)\./.test(name) ? `devtools.${name}` : name));

describe("rendering by the public SDK", function () {
  this.timeout(60_000);
  let gateway: TestGateway;
  let called: Called;
  let site: WebSite;
  let reader: PageReader;
  before(async () => {
    site = await WebSite.start();
    site.page("/v1/chat/completions", (_, response) => {
      const message = { role: "assistant", content: JSON.stringify(LAMP) };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify({ id: "1", created: 1, model: "m", choices }));
    });
    reader = openPageReader({ openai: `${site.url}/v1`, google: "http://127.0.0.1:1/v1" });
    // Uses a worker with a real browser instead of the simulated one.
    gateway = await testGateway({ workers: [reader.worker] });
    // The gateway's clock shows another day than the worker's, as after a jump of the time of day. That must not matter.
    const { url, token: apiToken, accountId: account_id } = gateway;
    const sdk = new Cloudflare({ apiToken, baseURL: `${url}/v4`, maxRetries: 0 });
    called = { sdk, account_id };
  });
  after(async () => {
    await gateway.stop();
    await reader.close();
    await site[Symbol.asyncDispose]();
  });

  it("has no method that is neither offered nor listed as not offered", () => {
    const methods = methodsOf(called.sdk.browserRendering).map(({ name }) => name);
    const listed = [...Object.keys(OFFERED), ...NOT_OFFERED];
    expect(methods.toSorted()).to.deep.equal(listed.toSorted());
  });

  for (const [name, drive] of Object.entries(OFFERED)) {
    it(`browserRendering.${name}`, () => drive(called));
  }

  it("answers are those that the guide shows", async () => {
    const guide = readFileSync(join(REPOSITORY, "docs/guides/rendering-calls.md"), "utf8");
    const shown = guide.matchAll(
      /api browser-rendering\/(\w+) -d '(.*)'\n```\n+```json\n([\s\S]*?)```/g,
    );
    const names: string[] = [];
    for (const [, name = "", sent = "", answer = ""] of shown) {
      names.push(name);
      const path = `/v4/accounts/${gateway.accountId}/browser-rendering/${name}`;
      const { json, text } = await gateway.ask(path, { method: "POST", json: JSON.parse(sent) });
      expect(placeless(json), `${name}: ${text}`).to.deep.equal(placeless(JSON.parse(answer)));
    }
    expect(names.toSorted()).to.deep.equal(Object.keys(PAGE_CALLS).toSorted());
  });

  it("methods that are not offered get 404 and the reason", async () => {
    const methods = methodsOf(called.sdk.browserRendering);
    for (const { name, call } of methods.filter((method) => NOT_OFFERED.includes(method.name))) {
      const { status, errors } = await errorOf(call(called.account_id));
      expect([status, errors[0]?.code], name).to.deep.equal([404, 1_004]);
      expect(errors[0]?.message, name).to.contain("/v4/openapi.json");
    }
  });
});

/** Replaces the positions and sizes of elements by their types, because they depend on the fonts of the machine. */
function placeless(answer: unknown): unknown {
  const text = JSON.stringify(answer, (key, value) =>
    ["top", "left", "width", "height"].includes(key) ? typeof value : value,
  );
  return JSON.parse(text);
}

interface Method {
  name: string;
  call: (account_id: string) => Promise<unknown>;
}

/** Returns the methods of a resource of the SDK and of the resources below it. */
function methodsOf(resource: object, prefix = ""): Method[] {
  const methods: Method[] = [];
  let type = Object.getPrototypeOf(resource);
  for (; type !== Object.prototype; type = Object.getPrototypeOf(type)) {
    for (const name of Object.getOwnPropertyNames(type)) {
      const method = Reflect.get(resource, name);
      if (name === "constructor" || name.startsWith("_") || typeof method !== "function") continue;
      const call = async (account_id: string) => {
        const given = { account_id, session_id: UNKNOWN, url: "https://example.com" };
        // The last declared parameter is for request options, so it is omitted. A method with three parameters takes
        // an id first.
        return method.apply(resource, method.length === 3 ? [UNKNOWN, given] : [given]);
      };
      methods.push({ name: prefix + name, call });
    }
  }
  const below = Object.entries(resource).filter(
    ([name, value]) => name !== "_client" && value instanceof Object && "_client" in value,
  );
  return [...methods, ...below.flatMap(([name, value]) => methodsOf(value, `${prefix}${name}.`))];
}

async function errorOf(calling: Promise<unknown>) {
  const error = await calling.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Cloudflare.APIError) return error;
  throw new Error(`Expected an error of the API: ${error}`);
}
