import { expect } from "chai";
import Cloudflare from "cloudflare";
import { type TestGateway, testGateway } from "../testing/test-gateway.ts";

const UNKNOWN = "0".repeat(32);
const HTML = "<h1>Hello</h1>";

interface Called {
  sdk: Cloudflare;
  account_id: string;
}

/** Every rendering method of the public SDK that the platform offers, as its users call it. */
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
    expect(text).to.be.a("string").and.contain(HTML);
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
 * The others answer 404 with code 1004: the platform has no such path. Those of `devtools` need a browser worker, which
 * this gateway lacks: devtools-clients.faults.test.ts calls them.
 */
const NOT_OFFERED = [
  ...["content", "scrape", "snapshot", "json", "links", "markdown", "accessibilityTree"].map(
    (name) => `${name}.create`,
  ),
  ...["session.list", "session.get"],
  ...["create", "delete", "connect", "launch", "protocol", "version"].map(
    (name) => `browser.${name}`,
  ),
  ...["liveView.create", "page.get"].map((name) => `browser.${name}`),
  ...["create", "list", "activate", "close", "get"].map((name) => `browser.targets.${name}`),
].map((name) => (/^(session|browser)\./.test(name) ? `devtools.${name}` : name));

describe("rendering by the public SDK", () => {
  let gateway: TestGateway;
  let called: Called;
  before(async () => {
    gateway = await testGateway();
    const { url, token: apiToken, accountId: account_id } = gateway;
    const sdk = new Cloudflare({ apiToken, baseURL: `${url}/v4`, maxRetries: 0 });
    called = { sdk, account_id };
  });
  after(() => gateway.stop());

  it("has no method that is neither offered nor listed as not offered", () => {
    const methods = methodsOf(called.sdk.browserRendering).map(({ name }) => name);
    const listed = [...Object.keys(OFFERED), ...NOT_OFFERED];
    expect(methods.toSorted()).to.deep.equal(listed.toSorted());
  });

  for (const [name, drive] of Object.entries(OFFERED)) {
    it(`browserRendering.${name}`, () => drive(called));
  }

  it("methods that are not offered get 404 and the reason", async () => {
    const methods = methodsOf(called.sdk.browserRendering);
    for (const { name, call } of methods.filter((method) => NOT_OFFERED.includes(method.name))) {
      const { status, errors } = await errorOf(call(called.account_id));
      expect([status, errors[0]?.code], name).to.deep.equal([404, 1_004]);
      expect(errors[0]?.message, name).to.contain("/v4/openapi.json");
    }
  });
});

interface Method {
  name: string;
  call: (account_id: string) => Promise<unknown>;
}

/** The methods of a resource of the SDK and of those below it. */
function methodsOf(resource: object, prefix = ""): Method[] {
  const methods: Method[] = [];
  let type = Object.getPrototypeOf(resource);
  for (; type !== Object.prototype; type = Object.getPrototypeOf(type)) {
    for (const name of Object.getOwnPropertyNames(type)) {
      const method = Reflect.get(resource, name);
      if (name === "constructor" || name.startsWith("_") || typeof method !== "function") continue;
      const call = async (account_id: string) => {
        const given = { account_id, session_id: UNKNOWN, url: "https://example.com" };
        // The last parameter is for options of the request, the one before an id where there are three.
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
