import type { IncomingMessage, ServerResponse } from "node:http";
import { expect } from "chai";
import { WebSocketServer } from "ws";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { mayShareCredentials } from "./request-filter.ts";

const gotoOptions = { waitUntil: "networkidle0" as const };

describe("filterRequests", function () {
  this.timeout(60_000);
  const pool = openPool();
  let site: WebSite;
  let framed: WebSite;
  let url: string;

  before(async () => {
    [site, framed] = await Promise.all([WebSite.start(), WebSite.start(), pool.start()]);
    framed.page("/frame", `<img src="/framed.png"><script src="/framed.js"></script>`);
    url = site.page(
      "/",
      `<title>page</title><link rel="stylesheet" href="/style.css"><img src="/image.png">
       <script src="/script.js"></script><iframe src="${framed.url}/frame"></iframe>
       <script>
         fetch("/fetched");
         const request = new XMLHttpRequest(); request.open("GET", "/requested"); request.send();
       </script>`,
    );
  });
  after(async () => {
    await Promise.all([pool.close(), site[Symbol.asyncDispose](), framed[Symbol.asyncDispose]()]);
  });
  beforeEach(() => {
    site.requests.length = 0;
    framed.requests.length = 0;
  });

  const ALL = ["/", "/fetched", "/image.png", "/requested", "/script.js", "/style.css"];
  const seen = ({ paths }: WebSite) => paths.filter((path) => path !== "/favicon.ico").sort();

  it("filterRequests() lets everything through when nothing is asked for", async () => {
    await print(pool, { url, gotoOptions });
    expect(seen(site)).to.deep.equal(ALL);
    expect(seen(framed)).to.deep.equal(["/frame", "/framed.js", "/framed.png"]);
  });

  it("rejectRequestPattern that matches the page itself is said so, also where a redirect leads to it", async () => {
    const moved = site.page("/moved", (_request, response) => {
      response.writeHead(302, { Location: "/away" }).end();
    });
    site.page("/away", "<title>away</title>");
    for (const [page, pattern] of [
      [url, "/"],
      [moved, "/away$"],
    ] as const) {
      const refused = await refusalOf(print(pool, { url: page, rejectRequestPattern: [pattern] }));
      expect(refused.code).to.equal("invalid_request");
      expect(refused.message).to.contain("rejectRequestPattern");
      expect(refused.details.faults?.map(({ pointer }) => pointer)).to.deep.equal([
        "/rejectRequestPattern",
      ]);
    }
    expect(seen(site)).to.deep.equal(["/moved"]);
  });

  it("rejectResourceTypes stops those types, in frames of other sites too", async () => {
    await print(pool, { url, gotoOptions, rejectResourceTypes: ["image", "xhr"] });
    expect(seen(site)).to.deep.equal(["/", "/fetched", "/script.js", "/style.css"]);
    expect(seen(framed)).to.deep.equal(["/frame", "/framed.js"]);
  });

  it("rejectResourceTypes of documents stops frames and not the page", async () => {
    await print(pool, { url, gotoOptions, rejectResourceTypes: ["document"] });
    expect(seen(site)).to.deep.equal(ALL);
    expect(seen(framed)).to.deep.equal([]);
  });

  it("allowResourceTypes stops all others but the page", async () => {
    const pdf = await print(pool, { url, gotoOptions, allowResourceTypes: ["image", "document"] });
    expect(pdf.title).to.equal("page");
    expect(seen(site)).to.deep.equal(["/", "/image.png"]);
    expect(seen(framed)).to.deep.equal(["/frame", "/framed.png"]);
  });

  it("rejectRequestPattern stops what matches, in every spelling", async () => {
    for (const pattern of ["/\\.(png|CSS)$/i", "/.*\\.(png|css)", "\\.(?:png|css)"]) {
      site.requests.length = 0;
      framed.requests.length = 0;
      await print(pool, { url, gotoOptions, rejectRequestPattern: [pattern] });
      expect(seen(site)).to.deep.equal(["/", "/fetched", "/requested", "/script.js"]);
      expect(seen(framed)).to.deep.equal(["/frame", "/framed.js"]);
    }
  });

  it("allowRequestPattern stops what none matches but the page; rejected patterns go first", async () => {
    const allowRequestPattern = ["script", "/image/"];
    const rejectRequestPattern = ["image"];
    await print(pool, { url, gotoOptions, allowRequestPattern });
    expect(seen(site)).to.deep.equal(["/", "/image.png", "/script.js"]);
    expect(seen(framed)).to.deep.equal([]);
    site.requests.length = 0;
    await print(pool, { url, gotoOptions, allowRequestPattern, rejectRequestPattern });
    expect(seen(site)).to.deep.equal(["/", "/script.js"]);
  });

  it("filterRequests() answers requests of workers", async () => {
    site.page("/worker.js", (_, response) => {
      response.setHeader("Content-Type", "text/javascript");
      response.end(
        `fetch("/from-worker").then(() => postMessage("done"), () => postMessage("failed"))`,
      );
    });
    const working = site.page(
      "/working",
      `<script>new Worker("/worker.js").onmessage = ({ data }) => {
         document.title = data; document.body.append(document.createElement("b")) }</script><body>`,
    );
    const waitForSelector = { selector: "b" };
    const reject = { url: working, waitForSelector, rejectRequestPattern: ["from-worker"] };
    expect((await print(pool, reject)).title).to.equal("failed");
    const other = { url: working, waitForSelector, rejectResourceTypes: ["image" as const] };
    expect((await print(pool, other)).title).to.equal("done");
  });

  it("rejectResourceTypes and patterns that allow keep WebSockets from connecting", async () => {
    const sockets = new WebSocketServer({ server: site.server });
    let connected = 0;
    sockets.on("connection", () => {
      connected += 1;
    });
    const html = `<script>const socket = new WebSocket("${site.url.replace("http", "ws")}");
      socket.onopen = () => done("open"); socket.onclose = ({ code }) => done(code);
      const done = (title) => { document.title = title; document.body.append(document.createElement("b")) }
    </script><body>`;
    const waitForSelector = { selector: "b", timeout: 30_000 };
    expect((await print(pool, { html, waitForSelector })).title).to.equal("open");
    const rejectResourceTypes = ["websocket" as const];
    expect((await print(pool, { html, waitForSelector, rejectResourceTypes })).title).to.equal(
      "1006",
    );
    const allowRequestPattern = ["http"];
    expect((await print(pool, { html, waitForSelector, allowRequestPattern })).title).to.equal(
      "1006",
    );
    sockets.close();
    expect(connected).to.equal(1);
  });

  it("filterRequests() and authenticate work together", async () => {
    const secret = site.page("/secret", (request, response) => {
      if (request.headers.authorization === undefined) {
        response.writeHead(401, { "WWW-Authenticate": 'Basic realm="r"' }).end();
      } else response.end(`<title>in</title><img src="/image.png">`);
    });
    const authenticate = { username: "a", password: "b" };
    const rejectResourceTypes = ["image" as const];
    const pdf = await print(pool, { url: secret, gotoOptions, authenticate, rejectResourceTypes });
    expect(pdf.title).to.equal("in");
    expect(seen(site)).to.not.include("/image.png");
  });

  it("authenticate answers no other port of the page's host", async () => {
    const challenge = (title: string) => (request: IncomingMessage, response: ServerResponse) => {
      if (request.headers.authorization === undefined) {
        response.writeHead(401, { "WWW-Authenticate": 'Basic realm="r"' }).end();
      } else response.end(`<title>${title}</title><iframe src="${framed.url}/other"></iframe>`);
    };
    framed.page("/other", challenge("other"));
    const own = site.page("/own", challenge("own"));
    expect(new URL(own).hostname).to.equal(new URL(framed.url).hostname);
    const authenticate = { username: "a", password: "b" };
    expect((await print(pool, { url: own, gotoOptions, authenticate })).title).to.equal("own");
    expect(framed.paths).to.include("/other");
    expect(framed.requests.filter(({ headers }) => headers.authorization)).to.deep.equal([]);
  });

  it("mayShareCredentials() accepts the page's origin, and its host over https on the default ports", () => {
    const cases: [page: string, url: string, may: boolean][] = [
      ["http://h/", "http://h/a", true],
      ["http://h:80/", "http://h/a", true],
      ["http://h/", "https://h/a", true],
      ["https://h:8443/", "https://h:8443/a", true],
      ["https://h/", "http://h/a", false],
      ["https://h/", "https://h:8443/a", false],
      ["http://h/", "http://h:8081/a", false],
      ["http://h/", "https://h:8443/a", false],
      ["http://h:8081/", "https://h/a", false],
      ["http://h/", "http://www.h/a", false],
      ["http://h/", "wss://h/a", false],
    ];
    for (const [page, url, may] of cases) {
      const found = mayShareCredentials(new URL(page), new URL(url));
      expect(found, `${page} ${url}`).to.equal(may);
    }
    expect(mayShareCredentials(null, null)).to.equal(false);
  });
});
