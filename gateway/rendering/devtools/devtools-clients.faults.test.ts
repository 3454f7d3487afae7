import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import Cloudflare from "cloudflare";
import { chromium } from "playwright-core";
import puppeteer, { type Page } from "puppeteer-core";
import { DEVTOOLS_SESSIONS_MAX } from "../../../schemas/rendering/devtools-limits.ts";
import { DevtoolsPlatform } from "../../../scripts/testing/devtools-platform.ts";
import { RawCdp } from "../../../scripts/testing/raw-cdp.ts";
import { until } from "../../../scripts/testing/until.ts";

/** Time in which a session must end: its browser exits, on a busy machine too. */
const END_MS_MAX = 120_000;
const UNKNOWN = "0".repeat(32);

describe("DevTools sessions", function () {
  this.timeout(600_000);
  let platform: DevtoolsPlatform;
  let site: Server;
  let page: string;

  before(async () => {
    site = createServer((request, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<title>${request.url}</title><h1>Hello</h1><input type=file>`);
    }).listen(0, "127.0.0.1");
    await once(site, "listening");
    page = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    platform = await DevtoolsPlatform.start({ TRUNKLINE_EGRESS_ALLOW: "127.0.0.1/32" });
  });
  after(async () => {
    await platform[Symbol.asyncDispose]();
    site.close();
  });
  afterEach(async () => {
    const { body } = await platform.ask("GET", "/session");
    expect(body, JSON.stringify(body)).to.be.an("array");
    for (const { sessionId } of body) await platform.ask("DELETE", `/browser/${sessionId}`);
  });
  const puppeteerOf = (browserWSEndpoint: string) =>
    puppeteer.connect({ browserWSEndpoint, headers: platform.headers });

  it("puppeteer drives a session, leaves it, and finds its pages again", async () => {
    const { body } = await platform.ask("POST", "/browser");
    const browser = await puppeteerOf(body.webSocketDebuggerUrl);
    const opened = await browser.newPage();
    await opened.goto(`${page}/first`);
    expect(await opened.title()).to.equal("/first");
    expect((await opened.screenshot()).length).to.be.above(1_000);
    expect(Buffer.from(await opened.pdf()).toString("latin1")).to.match(/^%PDF-/);
    const [popup] = await Promise.all([
      new Promise<Page | null>((resolve) => opened.once("popup", resolve)),
      opened.evaluate(`void open("${page}/popup")`),
    ]);
    await popup?.waitForSelector("h1");
    expect(await popup?.title()).to.equal("/popup");
    const context = await browser.createBrowserContext();
    const apart = await context.newPage();
    await apart.setRequestInterception(true);
    apart.on("request", (request) => void request.respond({ body: "<h1>Ours</h1>" }));
    await apart.goto(`${page}/intercepted`);
    expect(await apart.$eval("h1", (element) => element.textContent)).to.equal("Ours");
    await apart.setContent("x".repeat(3_000_000));
    expect((await apart.content()).length).to.be.above(3_000_000);
    await browser.disconnect();
    const again = await puppeteerOf(body.webSocketDebuggerUrl);
    const urls = (await again.pages()).map((one) => one.url());
    expect(urls).to.include.members([`${page}/first`, `${page}/popup`]);
    await again.close();
    await until(
      "the session has ended",
      async () => (await sessionOf(body.sessionId)).endTime,
      END_MS_MAX,
    );
    expect((await sessionOf(body.sessionId)).closeReasonText).to.equal("NormalClosure");
  });

  it("puppeteer begins a session and connects in one step, also under the younger path", async () => {
    const url = `${platform.url.replace(/^http/, "ws")}/browser?keep_alive=60000`;
    const browser = await puppeteerOf(url.replace("browser-rendering", "browser-run"));
    // On a slow machine the first page of the browser may open after the client has connected.
    const opened = (await browser.pages())[0] ?? (await browser.newPage());
    await opened.goto(page);
    expect(await opened.title()).to.equal("/");
    expect((await platform.ask("GET", "/session")).body).to.have.length(1);
    await browser.disconnect();
  });

  it("playwright drives a session by its WebSocket and by its http address", async () => {
    const id = await platform.begin();
    const { headers } = platform;
    const socket = `${platform.url.replace(/^http/, "ws")}/browser/${id}`;
    for (const endpoint of [socket, `${platform.url}/browser/${id}`]) {
      const browser = await chromium.connectOverCDP(endpoint, { headers });
      const first = await browser.contexts()[0]?.newPage();
      await first?.goto(`${page}/playwright`);
      expect(await first?.title()).to.equal("/playwright");
      const context = await browser.newContext({ locale: "de-DE" });
      const second = await context.newPage();
      await second.goto(page);
      expect(await second.evaluate("navigator.language")).to.equal("de-DE");
      await context.addCookies([{ name: "a", value: "b", url: page }]);
      expect(await context.cookies()).to.have.length(1);
      const file = { name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("sent") };
      await second.setInputFiles("input", file);
      const read = "document.querySelector('input').files[0].text()";
      expect(await second.evaluate(read)).to.equal("sent");
      await browser.close();
    }
  });

  it("the public SDK calls every method; where its address is a WebSocket, a client opens it", async () => {
    const { base_url: baseURL, api_token: apiToken, account_id } = platform.credentials;
    const { devtools } = new Cloudflare({ apiToken, baseURL, maxRetries: 0 }).browserRendering;
    const begun = await devtools.browser.create({ account_id, keep_alive: 600_000, targets: true });
    const id = begun.sessionId;
    const { domains, version } = await devtools.browser.protocol(id, { account_id });
    const commands = domains.flatMap((one) =>
      one.commands?.map(({ name }) => `${one.domain}.${name}`),
    );
    expect(version?.major).to.equal("1");
    expect(commands).to.include("Page.navigate").and.not.to.include("Browser.crash");
    const found = await devtools.browser.version(id, { account_id });
    expect(found.Browser).to.match(/Chrome\/\d/);
    expect(found.webSocketDebuggerUrl).to.equal(begun.webSocketDebuggerUrl);
    const { targets } = devtools.browser;
    const made = await targets.create(id, { account_id, url: `${page}/made` });
    expect(made).to.include({ type: "page", url: `${page}/made` });
    expect(await targets.list(id, { account_id })).to.have.length(2);
    const of = { account_id, session_id: id };
    expect(await targets.get(made.id, of)).to.include({ id: made.id, type: "page" });
    expect((await targets.activate(made.id, of)).message).to.equal("Target activated");
    const cdp = await RawCdp.open(platform.socket(`/browser/${id}/page/${made.id}`));
    expect((await cdp.call("Runtime.evaluate", { expression: "1 + 1" })).result.value).to.equal(2);
    cdp.socket.close();
    const view = await devtools.browser.liveView.create(id, { account_id, targetId: made.id });
    expect(view.id).to.equal(made.id);
    expect((await targets.close(made.id, of)).message).to.equal("Target is closing");
    const listed = await devtools.session.list({ account_id });
    expect(listed.map(({ sessionId }) => sessionId)).to.deep.equal([id]);
    expect((await devtools.session.get(id, { account_id }))?.startTime).to.be.a("number");
    for (const plain of [
      devtools.browser.connect(id, { account_id }),
      devtools.browser.launch({ account_id }),
      devtools.browser.page.get(made.id, of),
    ]) {
      const error = await plain.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(String(error)).to.contain("Upgrade: websocket");
    }
    expect((await devtools.browser.delete(id, { account_id })).status).to.equal("closing");
    await until("the session has ended", async () => (await sessionOf(id)).endTime, END_MS_MAX);
    expect((await devtools.browser.delete(id, { account_id })).status).to.equal("closed");
  });

  it("a live view shows the page and lets nobody do more, until it expires", async () => {
    const id = await platform.begin();
    const { body: target } = await platform.ask("PUT", `/browser/${id}/json/new?url=${page}/shown`);
    const asked = { targetId: target.id, expiresInMs: 600_000 };
    const { body: view } = await platform.ask("POST", `/browser/${id}/live_view`, asked);
    expect(view.options).to.deep.equal({ mode: "tab", guardrails: { mode: "readonly" } });
    // A second session opens the live view of the page, as a person would.
    const { body: viewer } = await platform.ask("POST", "/browser");
    const browser = await puppeteerOf(viewer.webSocketDebuggerUrl);
    const watching = await browser.newPage();
    await watching.goto(view.devtoolsFrontendUrl);
    await watching.waitForFunction("document.querySelector('img').naturalWidth > 100");
    await browser.disconnect();

    const cdp = await RawCdp.open(platform.socket("", { headers: {} }, view.webSocketDebuggerUrl));
    for (const method of ["Page.navigate", "Runtime.evaluate", "Input.dispatchMouseEvent"]) {
      const { error } = await cdp.send(method, { url: page, expression: "1" });
      expect(error?.message).to.match(/this address only shows the page$/);
    }
    cdp.socket.close();

    // Long enough to connect on a slow machine.
    const short = { targetId: target.id, expiresInMs: 15_000 };
    const { body: passing } = await platform.ask("POST", `/browser/${id}/live_view`, short);
    const late = await RawCdp.open(
      platform.socket("", { headers: {} }, passing.webSocketDebuggerUrl),
    );
    const [code] = await once(late.socket, "close");
    expect(code).to.equal(4_401);
    const isExpired = async () => (await fetch(passing.devtoolsFrontendUrl)).status === 404;
    await until("the address has expired", isExpired, END_MS_MAX);
    const wrong = view.devtoolsFrontendUrl.replace(/.{4}$/, "AAAA");
    expect((await fetch(wrong)).status).to.equal(404);
    expect((await fetch(view.devtoolsFrontendUrl)).status).to.equal(200);
  });

  it("a session without a client ends after keep_alive, and not before its client has left", async () => {
    // Long enough to connect on a slow machine.
    const id = await platform.begin("?keep_alive=15000");
    const cdp = await RawCdp.open(platform.socket(`/browser/${id}`));
    const idle = await platform.begin("?keep_alive=1000");
    await until("the idle one has ended", async () => (await sessionOf(idle)).endTime, END_MS_MAX);
    expect(await sessionOf(idle)).to.include({ closeReason: 2, closeReasonText: "BrowserIdle" });
    expect((await cdp.call("Browser.getVersion")).product).to.contain("Chrome");
    cdp.socket.close();
    await until("the other has ended too", async () => (await sessionOf(id)).endTime, END_MS_MAX);
    const refused = platform.socket(`/browser/${id}`);
    refused.on("error", () => {});
    const [, answer] = await once(refused, "unexpected-response");
    expect(answer.statusCode).to.equal(404);
    answer.resume();
  });

  it(`begins ${DEVTOOLS_SESSIONS_MAX} sessions of an account at a time, and refuses one more`, async () => {
    const ids: string[] = [];
    for (let i = 0; i < DEVTOOLS_SESSIONS_MAX; i++) ids.push(await platform.begin());
    const { status, body } = await platform.ask("POST", "/browser");
    expect([status, body.errors[0].code]).to.deep.equal([409, 1_007]);
    await platform.ask("DELETE", `/browser/${ids[0]}`);
    const isOver = async () => (await sessionOf(ids[0] ?? "")).endTime;
    await until("one has ended", isOver, END_MS_MAX);
    await platform.begin();
  });

  it("guardrails hold a session to its domains, and a client to looking", async () => {
    const guardrails = { allowedDomains: ["*.example.com", "127.0.0.1"] };
    const { body } = await platform.ask("POST", "/browser", { guardrails });
    const cdp = await RawCdp.open(platform.socket(`/browser/${body.sessionId}`));
    const { sessionId } = await cdp.openPage();
    const opened = await cdp.call("Page.navigate", { url: page }, sessionId);
    expect(opened.errorText).to.equal(undefined);
    const url = page.replace("127.0.0.1", "localhost");
    const { errorText = "" } = await cdp.call("Page.navigate", { url }, sessionId);
    const shown = await cdp.evaluate("document.title", sessionId);
    expect([errorText, shown]).not.to.deep.equal(["", "/"]);
    cdp.socket.close();
    const mode = Buffer.from('{"mode":"readonly"}').toString("base64url");
    const headers = { ...platform.headers, "cf-brapi-guardrails": mode };
    const looking = await RawCdp.open(platform.socket(`/browser/${body.sessionId}`, { headers }));
    expect((await looking.send("Browser.close")).error?.message).to.contain("only shows the page");
    looking.socket.close();
  });

  it("refuses what is wrong by its name, and what a token may not do", async () => {
    for (const [query, pointer] of [
      ["?keep_alive=999", "/query/keep_alive"],
      ["?keep_alive=600001", "/query/keep_alive"],
      ["?targets=yes", "/query/targets"],
    ]) {
      const { status, body } = await platform.ask("POST", `/browser${query}`);
      expect([status, body.errors[0].source.pointer]).to.deep.equal([400, pointer]);
    }
    const sets = { guardrails: { allowedDomainSets: ["common-cdns"] } };
    const { body } = await platform.ask("POST", "/browser", sets);
    expect(body.errors[0].source.pointer).to.equal("/guardrails/allowedDomainSets");
    expect((await platform.ask("GET", `/session/${UNKNOWN}`)).status).to.equal(404);
    const id = await platform.begin();
    const { status } = await platform.ask("GET", `/browser/${id}/json/list/${UNKNOWN}`);
    expect(status).to.equal(404);
    const closing = await platform.ask("GET", `/browser/${id}/json/close/${UNKNOWN}`);
    expect(closing.status).to.equal(404);
    const mode = await platform.ask("POST", `/browser/${id}/live_view`, { mode: "full" });
    expect(mode.body.errors[0].source.pointer).to.equal("/mode");
    const refusals: [string, Record<string, string>, number][] = [
      [`/browser/${id}`, {}, 401],
      [`/browser/${id}`, { Authorization: "Bearer x" }, 401],
      [`/browser/${id}`, (await platform.tokenWith("Browser Rendering Read")).headers, 403],
      [`/browser/${id}/page/${UNKNOWN}`, platform.headers, 404],
      ["/browser?keep_alive=1", platform.headers, 400],
    ];
    for (const [path, headers, expected] of refusals) {
      const socket = platform.socket(path, { headers });
      socket.on("error", () => {});
      const [, answer] = await once(socket, "unexpected-response");
      expect(answer.statusCode, path).to.equal(expected);
      answer.resume();
    }
    expect((await platform.ask("GET", "/session")).body).to.have.length(1);
  });

  it("the WebSocket of a token that no longer opens its route ends, and its session stays", async () => {
    const write = "Browser Rendering Write";
    const changes = [
      (token: string) => platform.revoke(token),
      (token: string) => platform.rollToken(token),
      (token: string) => platform.changeToken(token, write, "disabled"),
      (token: string) => platform.changeToken(token, "Browser Rendering Read"),
    ];
    const id = await platform.begin();
    const closed = changes.map(async (change) => {
      const token = await platform.tokenWith(write);
      const cdp = await RawCdp.open(platform.socket(`/browser/${id}`, { headers: token.headers }));
      const close = once(cdp.socket, "close");
      await change(token.id);
      const [code] = await close;
      return code;
    });
    expect(await Promise.all(closed)).to.deep.equal([4_401, 4_401, 4_401, 4_401]);
    expect(await sessionOf(id)).not.to.have.property("endTime");
  });

  const sessionOf = async (id: string) => (await platform.ask("GET", `/session/${id}`)).body;
});
