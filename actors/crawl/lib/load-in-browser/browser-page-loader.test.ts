import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { CRAWL_BODY_BYTES_MAX, LARGE_BODY_BYTES } from "../../../../schemas/crawl/limits.ts";
import { until } from "../../../../scripts/testing/until.ts";
import type { WebSite } from "../../../../scripts/testing/web-site.ts";
import { answers, LoaderScene, pageOf, scriptPage } from "./testing/loader-scene.ts";

describe("BrowserPageLoader", function () {
  this.timeout(180_000);
  const scene = new LoaderScene();
  const { pool, open, load } = scene;
  let site: WebSite;
  let other: WebSite;

  before(async () => {
    ({ site, other } = await scene.start());
  });
  beforeEach(() => scene.forgetRequests());
  afterEach(() => scene.closeLoaders());
  after(() => scene[Symbol.asyncDispose]());

  describe("load() gives the page", () => {
    it("as scripts have made it, with the metadata of its head", async () => {
      const modified = "Wed, 01 Jan 2025 00:00:00 GMT";
      const headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Last-Modified": modified,
        "X-Robots-Tag": "noindex",
      };
      const html = "<!DOCTYPE html><p id=a>x</p><script>a.textContent = '✓'</script>";
      const url = site.page("/made", answers(200, headers, html));
      let started = 0;
      const answer = await load(open(), url, {
        onStarted: () => {
          started += 1;
        },
      });
      expect(answer).to.deep.include({
        kind: "page",
        status: 200,
        truncated: false,
        contentType: headers["Content-Type"],
        lastModifiedAt: Date.parse(modified),
        awayMs: undefined,
        nofollow: false,
        noindex: true,
      });
      expect(pageOf(answer).html).to.match(
        /^<!DOCTYPE html>\n<html><head><\/head><body><p id="a">✓</,
      );
      expect(answer.browserMs).to.be.greaterThan(0).and.satisfy(Number.isInteger);
      expect(started).to.equal(1);
    });

    it("with the text and links of open shadow roots, and its meta refresh", async () => {
      const url = site.page(
        "/shadow",
        `<!doctype html><html lang=en><meta http-equiv=refresh content="0;url=/on"><x-a><b>light</b></x-a>
        <script>
          const host = document.querySelector("x-a");
          host.attachShadow({ mode: "open" }).innerHTML = "<a href=/in>in</a><x-b></x-b><slot></slot>";
          host.shadowRoot.querySelector("x-b").attachShadow({ mode: "open" }).innerHTML = "<i>deep</i>";
        </script>`,
      );
      const { html } = pageOf(await load(open(), url));
      expect(html).to.match(/^<!DOCTYPE html>\n<html lang="en"><head>.*<\/html>$/s);
      expect(html).to.include(
        '<x-a><template shadowrootmode="open"><a href="/in">in</a><x-b><template shadowrootmode="open"><i>deep</i></template></x-b><slot></slot></template><b>light</b></x-a>',
      );
      expect(html).to.include("0;url=/on");
      expect(site.paths).to.deep.equal(["/shadow"]);
    });

    it("of an error, with its body, even an empty one, and its Retry-After", async () => {
      const loader = open();
      const gone = site.page("/gone", answers(404, {}, "<p>Nothing here"));
      expect(pageOf(await load(loader, gone))).to.include({ status: 404 });
      const empty = site.page("/empty", answers(500, {}));
      expect(pageOf(await load(loader, empty))).to.include({ status: 500, html: "" });
      const busy = site.page("/busy", answers(429, { "Retry-After": "7" }, "later"));
      expect(pageOf(await load(loader, busy))).to.include({ status: 429, awayMs: 7_000 });
      const nothing = site.page("/nothing", answers(204, {}));
      expect(pageOf(await load(loader, nothing))).to.include({ status: 204, html: "" });
    });

    it("of an error, whatever waitForSelector or scripts were requested", async () => {
      const loader = open({
        waitForSelector: { selector: "#never", timeout: 300 },
        addScriptTag: [{ url: `${site.url}/never.js` }],
        gotoOptions: { waitUntil: "load", timeout: 10_000 },
      });
      site.page("/never.png", () => {});
      const busy = answers(503, { "Retry-After": "7" }, "<p>later");
      const later = pageOf(await load(loader, site.page("/busy", busy)));
      expect(later).to.include({ status: 503, awayMs: 7_000 });
      expect(later.html).to.contain("later");
      const gone = answers(404, {}, "<p>Nothing here<img src=/never.png>");
      const nothing = pageOf(await load(loader, site.page("/gone", gone)));
      expect(nothing.status).to.equal(404);
      expect(nothing.html).to.contain("Nothing here");
      expect(await load(loader, site.page("/good", "<p>x"))).to.include({ kind: "failed" });
    });

    it("of text that browsers would download or show in a viewer", async () => {
      const loader = open();
      for (const [type, body] of [
        ["text/plain", "a < b & c"],
        ["text/csv", "a,b\n1,2"],
        ["application/json", '{"a":"<b>"}'],
        ["application/xml", "<a><b/></a>"],
      ] as const) {
        const url = site.page("/text", answers(200, { "Content-Type": type }, body));
        expect(pageOf(await load(loader, url)), type).to.include({ html: body, contentType: type });
      }
      const attached = { "Content-Disposition": "attachment; filename=a.html" };
      const url = site.page("/attached", answers(200, attached, "<p>attached"));
      expect(pageOf(await load(loader, url)).html).to.contain("attached");
    });

    it("with the crawler's name in the header, in scripts and in workers", async () => {
      const name = "VendorBrowserRenderingCrawler/1.0";
      const url = site.page(
        "/name",
        scriptPage(`const code = "postMessage(navigator.userAgent)";
          const worker = new Worker(URL.createObjectURL(new Blob([code])));
          worker.onmessage = ({ data }) => {
            document.body.append(Object.assign(document.createElement("b"), { id: "done", textContent: data + "|" + navigator.userAgent }));
          };`),
      );
      const headers = { "X-Own": "1" };
      const waitForSelector = { selector: "#done" };
      const loader = open({ setExtraHTTPHeaders: headers, waitForSelector });
      expect(pageOf(await load(loader, url)).html).to.contain(`${name}|${name}`);
      expect(site.headersOf("/name")).to.include({ "user-agent": name, "x-own": "1" });
    });

    it("with cookies and credentials of the start's host, cookies that pages set, and other parameters", async () => {
      const challenge = (_: unknown, response: ServerResponse) => {
        const { authorization } = site.headersOf("/closed");
        if (authorization === undefined) {
          response.writeHead(401, { "WWW-Authenticate": 'Basic realm="a"' }).end("closed");
        } else response.writeHead(200, { "Set-Cookie": "seen=1" }).end("open");
      };
      const loader = open({
        cookies: [{ name: "given", value: "1" }],
        authenticate: { username: "a", password: "b" },
        addScriptTag: [{ content: "document.title = 'tagged'" }],
        viewport: { width: 320, height: 200 },
        emulateMediaType: "print",
        rejectResourceTypes: ["script"],
      });
      const closed = await load(loader, site.page("/closed", challenge));
      expect(pageOf(closed).html).to.contain("open").and.contain("<title>tagged</title>");
      const next = site.page("/next", "<script src=/a.js></script><p>x");
      await load(loader, next);
      expect(site.headersOf("/next").cookie).to.equal("given=1; seen=1");
      expect(site.paths).not.to.contain("/a.js");
    });

    it("without scripts if they are disabled", async () => {
      const loader = open({ setJavaScriptEnabled: false });
      const url = site.page("/off", scriptPage("document.title = 'ran'"));
      expect(pageOf(await load(loader, url)).html).to.contain("<title>here</title>");
    });

    it("truncated at its limit when it is large, after reserving memory", async () => {
      const loader = open({}, { takeHtmlMs: 60_000 });
      const large = site.page("/large", `<p>${"é".repeat(LARGE_BODY_BYTES)}`);
      let asked = 0;
      const onLarge = async () => {
        asked += 1;
      };
      expect(pageOf(await load(loader, large, { onLarge })).truncated).to.equal(false);
      expect(asked).to.equal(1);
      const grown = site.page("/grown", scriptPage("document.body.append('€'.repeat(5_000_000))"));
      const answer = pageOf(await load(loader, grown, { onLarge }));
      expect(answer.truncated).to.equal(true);
      expect(Buffer.byteLength(answer.html)).to.be.within(
        CRAWL_BODY_BYTES_MAX - 3,
        CRAWL_BODY_BYTES_MAX,
      );
      expect(asked).to.equal(2);
      const small = site.page("/small", "<p>x");
      await load(loader, small, { onLarge });
      expect(asked).to.equal(2);
    });
  });

  describe("load() makes one request for the document", () => {
    it("and returns the target of a redirect", async () => {
      const loader = open();
      for (const [location, to] of [
        ["/target?a#b", `${site.url}/target?a`],
        [`${other.url}/x`, `${other.url}/x`],
        // In UTF-8, as servers write it.
        [Buffer.from("/日本").toString("latin1"), `${site.url}/%E6%97%A5%E6%9C%AC`],
      ] as const) {
        const url = site.page("/from", answers(302, { Location: location }));
        const answer = await load(loader, url);
        expect(answer).to.deep.include({ kind: "redirect", to, status: 302 });
        expect(answer.browserMs).to.be.greaterThan(0);
      }
      const file = site.page("/file", answers(301, { Location: "file:///etc/passwd" }));
      expect(await load(loader, file)).to.include({ kind: "failed", status: 301, retry: false });
      expect(site.paths).to.deep.equal(["/from", "/from", "/from", "/file"]);
      expect(other.paths).to.deep.equal([]);
    });

    it("and does not navigate elsewhere, whatever scripts and refreshes request", async () => {
      const there = other.page("/there", "there");
      const ways = {
        location: scriptPage(`location.href = ${JSON.stringify(there)}`),
        late: scriptPage(`addEventListener("load", () => location.replace("/elsewhere"))`),
        refresh: `<!doctype html><meta http-equiv=refresh content="0; url=${there}"><title>here</title>`,
        reload: scriptPage("location.reload()"),
        form: `${scriptPage("document.forms[0].submit()").replace("<p>", `<form action=${there} method=post></form><p>`)}`,
        open: scriptPage(`open(${JSON.stringify(there)})`),
      };
      const loader = open({ waitForTimeout: 200 });
      for (const [name, page] of Object.entries(ways)) {
        const url = site.page(`/${name}`, page);
        expect(pageOf(await load(loader, url)).html, name).to.contain("here");
      }
      const header = answers(200, { Refresh: `0; url=${there}` }, "<title>here</title>");
      const sent = await load(loader, site.page("/header", header));
      expect(sent).to.include({ kind: "redirect", to: there, status: 200 });
      const paths = [...Object.keys(ways), "header"].map((name) => `/${name}`);
      expect(site.paths).to.deep.equal(paths);
      expect(other.paths).to.deep.equal([]);
    });

    it("while its frames load as parts of the page", async () => {
      other.page("/frame", "<script>parent.postMessage('framed', '*')</script>");
      const url = site.page(
        "/framed",
        `<!doctype html><script>onmessage = ({ data }) => document.body.className = data</script>
         <body><iframe src=${other.url}/frame></iframe>`,
      );
      const waitForSelector = { selector: ".framed" };
      expect(pageOf(await load(open({ waitForSelector }), url)).html).to.contain("framed");
    });

    it("a conditional one if the crawl wants only changed pages", async () => {
      const since = Date.parse("2025-06-01T00:00:00Z") / 1_000;
      const loader = open({ modifiedSince: since, cookies: [{ name: "given", value: "1" }] });
      const same = site.page("/same", answers(304, {}));
      expect(await load(loader, same)).to.deep.include({ kind: "unmodified", status: 304 });
      expect(site.headersOf("/same")).to.include({
        "if-modified-since": "Sun, 01 Jun 2025 00:00:00 GMT",
        cookie: "given=1",
      });
      const modified = "Sat, 31 May 2025 00:00:00 GMT";
      const old = site.page("/old", answers(200, { "Last-Modified": modified }, "old"));
      const lastModified = { lastModifiedAt: Date.parse(modified) };
      const ofSitemaps = open({ modifiedSince: since, source: "sitemaps" });
      const unmodified = { kind: "unmodified", ...lastModified };
      expect(await load(ofSitemaps, old)).to.deep.include(unmodified);
      // Linked pages may be newer.
      expect(await load(loader, old)).to.deep.include({ kind: "page", ...lastModified });
      expect(pageOf(await load(loader, site.page("/new", "new"))).html).to.contain("new");
      expect(pageOf(await load(loader, site.page("/", "new"), { isStart: true })).html).to.contain(
        "new",
      );
      expect(site.headersOf("/")).not.to.have.property("if-modified-since");
    });
  });

  describe("load() fails with a reason", () => {
    it("when there is no document", async () => {
      const loader = open();
      const picture = site.page("/picture", answers(200, { "Content-Type": "image/png" }));
      expect(await load(loader, picture)).to.deep.include({
        kind: "download",
        reason: 'its content type is "image/png", not text',
        contentType: "image/png",
        status: 200,
      });
      const busy = { "Content-Type": "image/png", "Retry-After": "7" };
      for (const status of [429, 503]) {
        const answer = await load(loader, site.page(`/busy-${status}`, answers(status, busy, "x")));
        expect(answer).to.include({ kind: "failed", status, retry: true, awayMs: 7_000 });
      }
      const reset = site.page("/reset", (request) => void request.socket.destroy());
      expect(await load(loader, reset)).to.deep.include({ kind: "failed", retry: true });
      expect(await load(loader, "http://127.0.0.2:9/")).to.deep.include({ kind: "failed" });
      const refused = await load(loader, "http://127.0.0.3/");
      expect(refused).to.deep.include({ kind: "failed", retry: false });
      expect(refused).to.have.property("reason").that.contains("not one this service fetches");
    });

    it("when the browser rejects a cookie", async () => {
      const cookies = [{ name: "__Host-a", value: "b", domain: "127.0.0.2" }];
      const answer = await load(open({ cookies }), site.page("/good", "<p>good"));
      expect(answer).to.deep.include({ kind: "failed", retry: false, browserMs: 0 });
      expect(answer).to.have.property("reason").that.contains("Cannot set cookies");
    });

    it("and throws the signal's reason when the turn is over", async () => {
      const loader = open();
      const turn = new AbortController();
      const asked = once(site.server, "request");
      const pending = load(
        loader,
        site.page("/never", () => {}),
        { signal: turn.signal },
      );
      const error = pending.catch((thrown: unknown) => thrown);
      await asked;
      const over = new Error("over");
      turn.abort(over);
      expect(await error).to.equal(over);
      expect(pageOf(await load(loader, site.page("/good", "<p>good"))).html).to.contain("good");
    });
  });

  it("load() leaves nothing of a page behind except its site's own storage", async () => {
    const loader = open();
    const busy =
      scriptPage(`window.name = "left"; localStorage.kept = 1; document.cookie = "kept=1";
      setInterval(() => fetch("/beat"), 20)`);
    await load(loader, site.page("/busy", busy));
    site.page("/beat", "");
    const next = scriptPage(`document.title = [window.name, history.length, localStorage.kept]`);
    const url = site.page("/next", next);
    expect(pageOf(await load(loader, url)).html).to.contain("<title>,2,1</title>");
    const beats = () => site.paths.filter((path) => path === "/beat").length;
    // A page in flight may still arrive.
    await load(loader, url);
    const before = beats();
    for (let loaded = 0; loaded < 5; loaded++) await load(loader, url);
    expect(beats()).to.equal(before);
  });

  it("load() shares one context, reuses its pages, and returns it when it is idle", async () => {
    const loader = open({}, { idleMs: 300 });
    const url = site.page("/set", answers(200, { "Set-Cookie": "seen=1" }, "<p>x"));
    await Promise.all([url, url, url].map((each) => load(loader, each)));
    expect(pool.contextsInUse).to.equal(1);
    await until("the context is given back", () => pool.contextsInUse === 0);
    await load(loader, site.page("/later", "<p>x"));
    expect(site.headersOf("/later").cookie).to.equal("seen=1");
  });

  it("load() replaces an old context, and keeps its cookies", async () => {
    const loader = open({}, { pagesMax: 2 });
    const url = site.page("/set", answers(200, { "Set-Cookie": "seen=1" }, "<p>x"));
    for (const each of [url, url, site.page("/later", "<p>x")]) await load(loader, each);
    expect(site.headersOf("/later").cookie).to.equal("seen=1");
    await until("the worn one is given back", () => pool.contextsInUse === 1);
  });
});
