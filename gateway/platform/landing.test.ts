import { expect } from "chai";
import { type TestGateway, testGateway } from "../testing/test-gateway.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

describe("landing", () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await testGateway();
  });
  after(() => gateway.stop());

  const get = (path: string, accept?: string) =>
    gateway.ask(path, { token: null, headers: accept === undefined ? {} : { Accept: accept } });

  it("/ leads to the console, signing up and the documentation, and loads nothing from elsewhere", async () => {
    const { status, headers, text } = await get("/", BROWSER);
    expect(status).to.equal(200);
    expect(headers.get("content-type")).to.equal("text/html; charset=utf-8");
    expect(headers.get("content-security-policy")).to.include("default-src 'none'");
    for (const path of ["/console", "/signup", "/docs"]) expect(text).to.include(`href="${path}"`);
    expect(text)
      .to.include('content="light dark"')
      .and.not.match(/(src|href)="https?:/);
  });

  it("/ does not offer accounts where they are by invitation", async () => {
    const closed = await testGateway({ config: { signup: "closed" } });
    const { text } = await closed.ask("/", { token: null });
    expect(text).to.include('href="/console"').and.not.include("/signup");
    await closed.stop();
  });

  it("answers browsers with a page where nothing is, and everybody else with the envelope", async () => {
    for (const [path, accept, type] of [
      ["/nothing", BROWSER, "text/html"],
      ["/nothing", undefined, "application/json"],
      ["/nothing", "*/*", "application/json"],
      ["/nothing", "application/json", "application/json"],
      ["/v4/nothing", BROWSER, "application/json"],
    ] as const) {
      const { status, headers } = await get(path, accept);
      expect(status, path).to.equal(404);
      expect(headers.get("content-type"), `${path} ${accept}`).to.include(type);
    }
    const { text, headers } = await get("/nothing", BROWSER);
    expect(text).to.include(`Request ${headers.get("x-request-id")}`);
    const posted = await gateway.ask("/nothing", { method: "POST", headers: { Accept: BROWSER } });
    expect(posted.headers.get("content-type")).to.include("application/json");
  });

  it("answers what browsers and crawlers ask for by themselves", async () => {
    const robots = await get("/robots.txt");
    expect(robots.text).to.equal("User-agent: *\nDisallow: /\n");
    const icon = await get("/favicon.ico");
    expect(icon.headers.get("content-type")).to.include("image/svg+xml");
    for (const { status, headers } of [robots, icon]) {
      expect(status).to.equal(200);
      expect(headers.get("cache-control")).to.include("max-age");
    }
  });
});
