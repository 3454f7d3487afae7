import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "chai";
import { WebSocketServer } from "ws";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import type { BrowserPool } from "./browser-pool.ts";
import type { RenderContext } from "./render-context.ts";

const { signal } = new AbortController();

describe("RenderContext", function () {
  this.timeout(90_000);
  let pool: BrowserPool;
  let site: WebSite;
  let context: RenderContext;
  let introductions = 0;

  before(async () => {
    pool = openPool();
    await pool.start();
    site = await WebSite.start();
    site.page("/", "<title>reached</title>");
    site.page("/image", (_, response) => {
      response.writeHead(200, { "Content-Type": "image/svg+xml" });
      response.end('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>');
    });
    site.page("/open", (_, response) => {
      response.writeHead(200, { "Access-Control-Allow-Origin": "*" }).end("reached");
    });
    const sockets = new WebSocketServer({ server: site.server });
    sockets.on("connection", (socket) => socket.send("reached"));
  });

  after(async () => {
    await pool.close();
    await site[Symbol.asyncDispose]();
  });

  beforeEach(async () => {
    context = await pool.newContext(signal);
    introductions = 0;
    const { introduce } = context.egress;
    context.egress.introduce = async () => {
      introductions += 1;
      await introduce();
    };
  });

  afterEach(() => context.release());

  it("introduces nothing to its proxy while nothing is fetched", async () => {
    await context.page.setContent("<title>alone</title><p>Text");
    expect([introductions, await context.page.title()]).to.deep.equal([0, "alone"]);
    expect((await context.page.browserContext().pages()).length).to.equal(1);
  });

  const FIRST_REQUESTS: Record<string, (url: string) => string> = {
    fetch: (url) => `fetch("${url}/open").then((response) => response.text())`,
    "fetch without credentials": (url) =>
      `fetch("${url}/open", { credentials: "omit" }).then((response) => response.text())`,
    WebSocket: (url) => `new Promise((resolve, reject) => {
      const socket = new WebSocket("${url.replace("http", "ws")}");
      socket.onmessage = ({ data }) => resolve(data);
      socket.onerror = reject;
    })`,
    worker: (url) => `new Promise((resolve, reject) => {
      const source = 'fetch("${url}/open").then((response) => response.text()).then(postMessage)';
      const worker = new Worker(URL.createObjectURL(new Blob([source])));
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
    })`,
    "twenty at once": (url) => `Promise.all(Array.from({ length: 20 }, (_, index) =>
      fetch("${url}/open?" + index).then((response) => response.text()),
    )).then((texts) => [...new Set(texts)].join())`,
    image: (url) => `new Promise((resolve, reject) => {
      const image = Object.assign(new Image(), { src: "${url}/image", onerror: reject });
      image.onload = () => resolve("reached");
    })`,
    frame: (url) => `new Promise((resolve) => {
      const frame = Object.assign(document.createElement("iframe"), { src: "${url}/" });
      frame.onload = () => resolve("reached");
      document.body.append(frame);
    })`,
  };
  for (const [name, script] of Object.entries(FIRST_REQUESTS)) {
    it(`lets a document's first request through, if it is a ${name}`, async () => {
      await context.page.setContent("<body>");
      const before = site.requests.length;
      expect(await context.page.evaluate(script(site.url))).to.equal("reached");
      expect(introductions).to.equal(1);
      if (name !== "WebSocket") expect(site.requests.length).to.be.above(before);
      expect((await context.page.browserContext().pages()).length).to.be.at.most(2);
    });
  }

  it("authorize() makes the first request one of many: nothing is introduced behind it", async () => {
    await context.authorize();
    expect(context.page.url()).to.equal("about:blank");
    const response = await context.page.goto(`${site.url}/`);
    expect([response?.status(), introductions]).to.deep.equal([200, 0]);
  });

  it("authorize() that failed is tried again by the context's next page", async () => {
    const { credentials } = context.egress;
    const { password } = credentials;
    const open = () => context.openPage({ userAgent: "test" });
    credentials.password = "wrong";
    const failed = await (await open()).authorize().catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Error);
    credentials.password = password;
    const next = await open();
    await next.authorize();
    expect((await next.page.goto(`${site.url}/`))?.status()).to.equal(200);
  });

  it("authorizeWithDocument() lets the first document through, and all that follows it", async () => {
    site.page("/framed", `<iframe src="/"></iframe><img src="/image">`);
    await context.authorizeWithDocument();
    const { requests } = site;
    const before = requests.length;
    const response = await context.page.goto(`${site.url}/framed`, { waitUntil: "load" });
    expect([response?.status(), introductions]).to.deep.equal([200, 1]);
    // The proxy called `introduce`, but the context was already being authorized, so no second page was opened.
    expect((await context.page.browserContext().pages()).length).to.equal(1);
    const paths = requests.slice(before).map(({ path }) => path);
    expect(paths.toSorted()).to.deep.equal(["/", "/framed", "/image"]);
    for (const script of Object.values(FIRST_REQUESTS)) {
      expect(await context.page.evaluate(script(site.url))).to.equal("reached");
    }
    expect((await context.page.goto(`${site.url}/`))?.status()).to.equal(200);
  });

  it("authorizeWithDocument() shows no site the credentials of the proxy, whatever it asks for", async () => {
    const challenges = { 401: "WWW-Authenticate", 407: "Proxy-Authenticate" };
    for (const [status, field] of Object.entries(challenges)) {
      site.page(`/${status}`, (_, response) => {
        response.writeHead(Number(status), { [field]: 'Basic realm="trunkline-egress"' }).end("no");
      });
      await using fresh = await pool.newContext(signal);
      await fresh.authorizeWithDocument();
      const loaded = fresh.page.goto(`${site.url}/${status}`).catch((error) => error);
      const response = (await loaded) as { status?: () => number };
      if (status === "401") expect(response.status?.()).to.equal(401);
      const { password } = fresh.egress.credentials;
      const secret = Buffer.from(`trunkline:${password}`).toString("base64");
      for (const { path, headers } of site.requests) {
        expect(JSON.stringify(headers), path).to.not.include(secret);
      }
      expect(site.paths.filter((path) => path === `/${status}`).length).to.be.at.least(1);
    }
  });

  it("tells a stranger who finds the port no more than that it is one, before and after", async () => {
    for (let visit = 1; visit <= 2; visit++) {
      const stranger = connect(Number(new URL(context.egress.url).port), "127.0.0.1");
      stranger.write(`GET ${site.url}/stranger HTTP/1.1\r\nHost: x\r\n\r\n`);
      const [answer] = await once(stranger, "data");
      expect(String(answer)).to.match(/^HTTP\/1.1 407 /);
      stranger.destroy();
    }
    expect(introductions).to.equal(1);
    expect(site.paths).not.to.include("/stranger");
    expect(context.egress.bytes).to.deep.equal({ received: 0, sent: 0 });
  });
});
