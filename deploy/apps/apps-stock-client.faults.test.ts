import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { build } from "esbuild";
import type { Browser, BrowserContext, Page } from "puppeteer-core";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { InstalledPackages } from "../../scripts/testing/installed-app.ts";
import { startPersonBrowser } from "../../scripts/testing/person-browser.ts";
import { until } from "../../scripts/testing/until.ts";

/** The newest version of each package when this test was written. */
const VERSIONS = { agents: "0.32.0", partysocket: "1.3.0", react: "19.3.1", "react-dom": "19.3.1" };

/** The code of the client library's documentation, without host or protocol. */
const PAGE = `
import { createRoot } from "react-dom/client";
import { createElement, useState } from "react";
import { useAgent } from "agents/react";
import { AgentClient } from "agents/client";

function Counter() {
  const [count, setCount] = useState("none");
  const agent = useAgent({ agent: "counter", name: "shared", onStateUpdate: (state) => setCount(String(state.count)) });
  const add = async () => { document.title = "called: " + (await agent.call("add", [2])); };
  return createElement("button", { onClick: add }, count);
}
createRoot(document.querySelector("main")).render(createElement(Counter));
const client = new AgentClient({ agent: "counter", name: "shared", host: location.host, onStateUpdate: (state) => {
  document.querySelector("output").textContent = String(state.count);
} });`;

const app = (script: string) => `
import { Agent, callable, routeAgentRequest } from "trunkline/agents";
export class Counter extends Agent {
  initialState = { count: 1 };
  add(by) { this.setState({ count: this.state.count + by }); return this.state.count; }
}
callable()(Counter.prototype.add, { kind: "method", name: "add", addInitializer() {} });
const SCRIPT = ${JSON.stringify(script)};
const headers = { "content-type": "text/html" };
export default {
  async fetch(request, env) {
    const routed = await routeAgentRequest(request, env);
    if (routed) return routed;
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/script.js") return new Response(SCRIPT, { headers: { "content-type": "text/javascript" } });
    if (pathname === "/set") return new Response("set", { headers: { "set-cookie": "sid=secret; Path=/" } });
    if (pathname === "/sent") return new Response(request.headers.get("cookie") ?? "none");
    return new Response('<!doctype html><main></main><output></output><script type="module" src="/script.js"></script>', { headers });
  },
};`;

describe("a stock client on an app's own origin", function () {
  this.timeout(900_000);
  let platform: AppPlatform;
  let packages: InstalledPackages;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const urls: Record<string, string> = {};
  before(async () => {
    packages = await InstalledPackages.install(VERSIONS);
    const entry = join(packages.folder, "page/index.js");
    await mkdir(join(packages.folder, "page"));
    await writeFile(entry, PAGE);
    const { outputFiles } = await build({
      ...{ entryPoints: [entry], bundle: true, write: false, format: "esm" },
      ...{ platform: "browser", minify: true, logLevel: "error", external: ["node:*"] },
      define: { "process.env.NODE_ENV": '"production"' },
    });
    platform = await AppPlatform.start({ TRUNKLINE_ROLES: "gateway,actors" });
    const agents = [{ binding: "Counter", class_name: "Counter" }];
    for (const name of ["one", "two"]) {
      const code = app(outputFiles?.[0]?.text ?? "");
      const { body } = await platform.deploy(name, code, { agents });
      expect(body.success, JSON.stringify(body.errors)).to.equal(true);
      urls[name] = body.result.url;
    }
    browser = await startPersonBrowser();
  });
  after(async () => {
    await browser?.close();
    await platform?.[Symbol.asyncDispose]();
    await packages?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    context = await browser.createBrowserContext();
    page = await context.newPage();
  });
  afterEach(() => context.close());

  const text = (selector: string) => page.$eval(selector, ({ textContent }) => textContent);
  const shown = (path: string) =>
    page.goto(path).then(() => page.evaluate("document.body.innerText"));

  it("useAgent and AgentClient connect, show the state and call, without a host or TLS", async () => {
    await page.goto(`${urls.one}/`);
    await page.waitForSelector("main button", { timeout: 60_000 });
    await until("the state is shown", async () => (await text("main button")) === "1", 60_000);
    await page.click("main button");
    await until("it is called", async () => (await page.title()) === "called: 3", 60_000);
    for (const selector of ["main button", "output"]) {
      await until(selector, async () => (await text(selector)) === "3", 60_000);
    }
  });

  it("an app gets no cookies of the platform, another app, or its scripts, and its scripts read none", async () => {
    await page.goto(`${platform.url}/login`);
    await page.type("aria/Email[role='textbox']", platform.credentials.user.email);
    await page.type("input[type=password]", platform.credentials.user.password);
    await Promise.all([page.waitForNavigation(), page.click("main form button")]);
    await shown(`${urls.one}/set`);
    expect(await shown(`${urls.one}/sent`)).to.equal("sid=secret");
    const cookies = await context.cookies();
    const names = cookies.map(({ domain, name }) => `${domain} ${name}`);
    expect(names).to.include("127.0.0.1 tl_session");
    const own = cookies.find(({ domain }) => domain === "localhost");
    expect(own).to.deep.include({ httpOnly: true, value: "secret" });
    // The other app tries all it can to read or set the first app's cookie.
    expect(await shown(`${urls.two}/sent`)).to.equal("none");
    expect(await page.evaluate("document.cookie")).to.equal("");
    await page.evaluate("document.cookie = 'sid=planted; path=/'");
    for (const app of ["one", "two"]) {
      const expected = app === "one" ? "sid=secret" : "none";
      expect(await shown(`${urls[app]}/sent`), app).to.equal(expected);
    }
    // The app's port under the platform's host name, for which the browser has the platform's cookies.
    const { port } = new URL(urls.two ?? "");
    expect(await shown(`http://127.0.0.1:${port}/sent`)).to.equal("none");
    expect(page.url()).to.equal(`${urls.two}/sent`);
    // Opens a page of the platform at `localhost`, the host name of the apps.
    const { port: ours } = new URL(platform.url);
    await page.goto(`http://localhost:${ours}/profile/password`);
    expect(page.url()).to.equal(`${platform.url}/profile/password`);
    const left = (await context.cookies()).filter(({ domain }) => domain === "localhost");
    expect(left.map(({ value }) => value).toSorted()).to.deep.equal(["planted", "secret"]);
  });
});
