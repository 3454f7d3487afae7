import { expect } from "chai";
import { WebSocketServer } from "ws";
import type { z } from "zod";
import type { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { openPool, print, startPrint } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";

type ReferrerPolicy = NonNullable<
  NonNullable<z.input<typeof PdfRequest>["gotoOptions"]>["referrerPolicy"]
>;

const A_PAGE = "<!doctype html><title>a page</title><p>Hello";

describe("printPdf", function () {
  this.timeout(60_000);
  const pool = openPool();
  let site: WebSite;
  let other: WebSite;

  before(async () => {
    [site, other] = await Promise.all([WebSite.start(), WebSite.start(), pool.start()]);
    site.page("/", A_PAGE);
  });
  after(async () => {
    await Promise.all([pool.close(), site[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
  });
  beforeEach(() => {
    site.requests.length = 0;
    other.requests.length = 0;
  });

  describe("the page as a whole", () => {
    it("scrollPage loads what loads on sight, to the page's end and beyond one window", async () => {
      const far = `<div style="height: 30000px">top</div>`;
      const script = `new IntersectionObserver(([{ isIntersecting }]) => {
        if (isIntersecting) document.title = "seen";
      }).observe(document.querySelector("hr"))`;
      const html = `<title>unseen</title>${far}<hr><script>${script}</script>`;
      expect((await print(pool, { html })).title).to.equal("unseen");
      expect((await print(pool, { html, scrollPage: true })).title).to.equal("seen");
      const off = { html, scrollPage: true, setJavaScriptEnabled: false };
      expect((await print(pool, off)).title).to.equal("unseen");
    });

    it("a page that reloads for ever, or leads on by script for ever, is said to do so", async () => {
      const cases = [
        ["/reload", "location.reload()", "load"],
        ["/onload", "onload = () => location.reload()", "networkidle0"],
        ["/onward", "location.href = '/onward?' + Math.random()", "load"],
      ] as const;
      await Promise.all(
        cases.map(async ([path, script, waitUntil]) => {
          const url = site.page(path, `<title>x</title><script>${script}</script>`);
          const gotoOptions = { waitUntil, timeout: 8_000 };
          const refused = await refusalOf(print(pool, { url, gotoOptions }));
          expect(refused.message, path).to.match(
            /^Cannot print the page: it reloads or navigates by itself; it has replaced its document \d+ times$/,
          );
        }),
      );
    });

    it("a page that is slow, after it has led on once by script, is said to be slow", async () => {
      const slow = site.page("/slow", () => {});
      const url = site.page("/to-slow", `<script>location.href = ${JSON.stringify(slow)}</script>`);
      const gotoOptions = { waitUntil: "load" as const, timeout: 2_000 };
      const refused = await refusalOf(print(pool, { url, gotoOptions }));
      expect(refused.message).to.contain("longer than 2000 ms");
    });

    it("failOnStatus refuses the statuses that it names, and no others", async () => {
      for (const status of [404, 503, 200]) {
        site.page(`/${status}`, (_request, response) => {
          response.writeHead(status).end(`<title>${status}</title>`);
        });
      }
      const moved = site.page("/moved", (_request, response) => {
        response.writeHead(302, { Location: "/404" }).end();
      });
      const at = (status: number) => `${site.url}/${status}`;
      for (const [url, failOnStatus] of [
        [at(404), [404]],
        [moved, [404]],
        [at(404), ["4xx"]],
        [at(503), [404, "5xx"]],
      ] as const) {
        const refused = await refusalOf(
          print(pool, { url, failOnStatus: [...failOnStatus], bestAttempt: true }),
        );
        expect(refused.code).to.equal("response_failed");
        expect(refused.message).to.match(/it answered (404|503), which failOnStatus names/);
      }
      for (const [url, failOnStatus] of [
        [at(200), ["4xx", "5xx"]],
        [at(404), [403, "5xx"]],
        [at(404), undefined],
      ] as const) {
        const pdf = await print(pool, {
          url,
          ...(failOnStatus && { failOnStatus: [...failOnStatus] }),
        });
        expect(pdf.title).to.equal(url.slice(-3));
      }
      expect((await print(pool, { html: A_PAGE, failOnStatus: ["4xx"] })).title).to.equal("a page");
    });

    it("summary() has the status of the page itself, after redirects, and none for html", async () => {
      site.page("/gone", (_request, response) => response.writeHead(410).end("<p>gone"));
      const url = site.page("/to-gone", (_request, response) => {
        response.writeHead(301, { Location: "/gone" }).end();
      });
      const statusOf = async (request: z.input<typeof PdfRequest>) => {
        const printed = await startPrint(pool, request);
        for await (const _ of printed.chunks);
        return printed.summary().status;
      };
      expect(await statusOf({ url })).to.equal(410);
      expect(await statusOf({ url: `${site.url}/` })).to.equal(200);
      expect(await statusOf({ html: A_PAGE })).to.equal(undefined);
    });
  });

  describe("the document", () => {
    it("printPdf() prints html", async () => {
      const pdf = await print(pool, { html: A_PAGE });
      expect(pdf.title).to.equal("a page");
      expect(pdf.trailer.pages).to.equal(1);
      expect(pdf.trailer.bytes).to.equal(pdf.bytes.length);
      expect(pdf.trailer.browserMs).to.be.within(1, 60_000);
      expect(pdf.size).to.deep.equal([612, 792]);
    });

    it("printPdf() prints a url", async () => {
      expect((await print(pool, { url: site.url })).title).to.equal("a page");
    });

    it("printPdf() gives html the origin about:blank, where relative addresses lead nowhere", async () => {
      const html = `<script>document.title = origin + " " + location.href</script><img src="/x">`;
      expect((await print(pool, { html })).title).to.equal("null about:blank");
    });

    it("printPdf() makes the same bytes of the same input, by us and at no time", async () => {
      const request = {
        html: "<title>(same) \\ ü</title><h1>x</h1><ul><li>y</ul><a href='http://z/'>z</a>",
      };
      const [first, second] = await Promise.all([print(pool, request), print(pool, request)]);
      expect(first.bytes.equals(second.bytes)).to.equal(true);
      expect(first.title).to.equal("(same) \\ ü");
      expect(first.has("/Creator (Trunkline)\n/Producer (Trunkline)")).to.equal(true);
      expect(first.has("Skia")).to.equal(false);
      expect(first.has("Chrom")).to.equal(false);
    });

    it("printPdf() keeps the PDF valid", async () => {
      const pdf = await print(pool, {
        html: `${A_PAGE}<h1>two</h1>`,
        pdfOptions: { outline: true },
      });
      expect(pdf.faults).to.equal("");
      expect(pdf.texts).to.deep.equal(["Hellotwo"]);
    });

    it("printPdf() streams a document of many pages and large images", async () => {
      const noise = `<script>for (let i = 0; i < 6; i++) {
        const canvas = Object.assign(document.createElement("canvas"), { width: 700, height: 500 });
        const drawn = canvas.getContext("2d");
        const image = drawn.createImageData(700, 500);
        for (let at = 0; at < image.data.length; at++) image.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
        drawn.putImageData(image, 0, 0);
        document.body.append(canvas);
      }</script>`;
      const pages = "<p style='break-after: page'>page</p>".repeat(120);
      const pdf = await print(pool, { html: `<body>${pages}${noise}` });
      expect(pdf.bytes.length).to.be.above(3_000_000);
      expect(pdf.trailer.pages).to.be.above(120);
      expect(pdf.trailer.pages).to.equal(Math.max(...countsOf(pdf.bytes)));
      expect(pdf.faults).to.equal("");
    });

    it("printPdf() prints a document of several megabytes", async () => {
      const pdf = await print(pool, {
        html: `<title>big</title><p hidden>${"word ".repeat(2_000_000)}`,
      });
      expect(pdf.title).to.equal("big");
    });
  });

  describe("parameters", () => {
    it("emulateMediaType chooses the style", async () => {
      const html = `<script>document.title = matchMedia("screen").matches ? "screen" : "print"</script>`;
      const wide = `<style>@media screen { p { break-after: page } }</style><p>1<p>2<p>3`;
      expect(
        (await print(pool, { html: html + wide, emulateMediaType: "screen" })).trailer.pages,
      ).to.equal(3);
      expect((await print(pool, { html: html + wide })).trailer.pages).to.equal(1);
      expect((await print(pool, { html, emulateMediaType: "print" })).title).to.equal("print");
    });

    it("cookies go to their sites and no others", async () => {
      site.page(
        "/framed",
        `<img src="${other.url}/pixel"><script>document.title = document.cookie</script>`,
      );
      const cookies = [
        { name: "mine", value: "1" },
        { name: "secret", value: "2", httpOnly: true, sameSite: "Strict" as const, url: site.url },
        { name: "elsewhere", value: "3", url: "http://127.0.0.9/" },
        { name: "deeper", value: "4", path: "/deeper", domain: "127.0.0.2" },
      ];
      const gotoOptions = { waitUntil: "load" as const };
      const pdf = await print(pool, { url: `${site.url}/framed`, cookies, gotoOptions });
      expect(pdf.title).to.equal("mine=1");
      expect(site.headersOf("/framed").cookie?.split("; ").sort()).to.deep.equal([
        "mine=1",
        "secret=2",
      ]);
    });

    it("cookies a browser does not take are an invalid request", async () => {
      const cookies = [{ name: "__Host-a", value: "1", domain: "127.0.0.2" }];
      const { code, details } = await refusalOf(print(pool, { url: site.url, cookies }));
      expect(code).to.equal("invalid_request");
      expect(details.faults?.[0]?.pointer).to.equal("/cookies");
    });

    it("viewport sizes the window", async () => {
      const html = `<meta name=viewport content="width=device-width"><script>
        document.title = [innerWidth, innerHeight, devicePixelRatio, navigator.maxTouchPoints > 0]</script>`;
      expect((await print(pool, { html })).title).to.equal("1920,1080,1,false");
      const viewport = {
        width: 400,
        height: 300,
        deviceScaleFactor: 2,
        hasTouch: true,
        isMobile: true,
      };
      expect((await print(pool, { html, viewport })).title).to.equal("400,300,2,true");
    });

    it("viewport is what a page is laid out for, and takes for seen, wherever it comes from", async () => {
      const html = `<style>body { margin: 0 } @media (min-width: 1900px) { body { color: red } }</style>
        <p style="position: absolute; top: 1000px; left: 1800px">seen</p><p style="position: absolute; top: 1200px">below</p><script>
        new IntersectionObserver((entries) => {
          const seen = entries.map(({ isIntersecting }) => isIntersecting);
          const { clientWidth } = document.documentElement;
          document.title = [innerWidth, innerHeight, clientWidth, visualViewport.height, getComputedStyle(document.body).color, seen];
          requestAnimationFrame(() => requestAnimationFrame(() => { document.body.id = "drawn" }));
        }).observe(document.querySelector("p"));
      </script>`;
      const url = site.page("/laid-out", html);
      const waitForSelector = { selector: "#drawn" };
      const expected = "1920,1080,1920,1080,rgb(255, 0, 0),true";
      expect((await print(pool, { html, waitForSelector })).title).to.equal(expected);
      expect((await print(pool, { url, waitForSelector })).title).to.equal(expected);
    });

    it("viewport turns the window where it is landscape, and each of its fields stands alone", async () => {
      const html = `<meta name=viewport content="width=device-width"><script>
        document.title = [screen.orientation.type.split("-")[0], "ontouchstart" in window,
          matchMedia("(resolution: 3dppx)").matches, screen.width === innerWidth]</script>`;
      const shown = async (field: object) =>
        (await print(pool, { html, viewport: { width: 400, height: 300, ...field } })).title;
      expect(await shown({})).to.equal("portrait,false,false,false");
      expect(await shown({ isLandscape: true })).to.equal("landscape,false,false,false");
      expect(await shown({ hasTouch: true })).to.equal("portrait,true,false,false");
      expect(await shown({ deviceScaleFactor: 3 })).to.equal("portrait,false,true,false");
      expect(await shown({ isMobile: true })).to.equal("portrait,false,false,true");
    });

    it("userAgent is what the site and the page see", async () => {
      const url = site.page("/agent", "<script>document.title = navigator.userAgent</script>");
      expect((await print(pool, { url, userAgent: "Mine/1.0" })).title).to.equal("Mine/1.0");
      expect(site.headersOf("/agent")["user-agent"]).to.equal("Mine/1.0");
      expect((await print(pool, { url })).title).to.match(/ Chrome\/\d/);
    });

    it("setExtraHTTPHeaders go with every request", async () => {
      const url = site.page("/headers", `<img src="${other.url}/pixel">`);
      const setExtraHTTPHeaders = { "X-Extra": "of mine" };
      await print(pool, { url, setExtraHTTPHeaders, gotoOptions: { waitUntil: "load" } });
      expect(site.headersOf("/headers")["x-extra"]).to.equal("of mine");
      expect(other.headersOf("/pixel")["x-extra"]).to.equal("of mine");
    });

    it("setJavaScriptEnabled turns scripts off, script tags too, and style tags and waits work on", async () => {
      const html = `<title>off</title><noscript><h1>x</h1></noscript><script>document.title = "on"</script>`;
      const pdf = await print(pool, {
        html,
        setJavaScriptEnabled: false,
        addStyleTag: [{ content: "h1 { break-after: page }" }],
        addScriptTag: [{ content: `document.title = "added"` }, { url: `${site.url}/none.js` }],
        waitForSelector: { selector: "h1", visible: true },
      });
      expect(pdf.title).to.equal("off");
    });

    it("authenticate answers the host of the url and no other", async () => {
      const challenge = { "WWW-Authenticate": 'Basic realm="r"' };
      site.page("/private", (request, response) => {
        if (request.headers.authorization === undefined)
          response.writeHead(401, challenge).end("<title>401");
        else
          response.end(
            `<title>${request.headers.authorization}</title><img src="${foreign}/pixel">`,
          );
      });
      const foreign = other.url.replace("127.0.0.2", "[::ffff:127.0.0.2]");
      other.page("/pixel", (_, response) => void response.writeHead(401, challenge).end());
      const authenticate = { username: "Aladdin", password: "open sesame" };
      const url = `${site.url}/private`;
      const pdf = await print(pool, { url, authenticate, gotoOptions: { waitUntil: "load" } });
      expect(pdf.title).to.equal("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
      expect(other.headersOf("/pixel").authorization).to.equal(undefined);
      expect((await print(pool, { url })).title).to.equal("401");
    });

    it("authenticate with what is wrong ends with the site's refusal", async () => {
      const url = site.page("/never", (_, response) => {
        response.writeHead(401, { "WWW-Authenticate": 'Basic realm="r"' }).end("<title>no</title>");
      });
      const authenticate = { username: "a", password: "b" };
      expect((await print(pool, { url, authenticate })).title).to.equal("no");
    });

    it("gotoOptions say who refers, under either name", async () => {
      await print(pool, { url: site.url, gotoOptions: { referer: "http://from.example/" } });
      expect(site.headersOf("/").referer).to.equal("http://from.example/");
      await print(pool, { url: site.url, goToOptions: { referer: "http://again.example/" } });
      expect(site.headersOf("/").referer).to.equal("http://again.example/");
    });

    it("gotoOptions say how much of who refers is told", async () => {
      const foreign = { referer: "http://from.example/path" };
      const secure = { referer: "https://from.example/path" };
      const own = { referer: `${site.url}/path` };
      const told = async (gotoOptions: typeof own & { referrerPolicy?: ReferrerPolicy }) => {
        await print(pool, { url: site.url, gotoOptions });
        return site.headersOf("/").referer?.replace(site.url, "own:");
      };
      const expected: Record<ReferrerPolicy, (string | undefined)[]> = {
        "no-referrer": [undefined, undefined, undefined],
        "no-referrer-when-downgrade": ["http://from.example/path", undefined, "own:/path"],
        origin: ["http://from.example/", "https://from.example/", "own:/"],
        "origin-when-cross-origin": ["http://from.example/", "https://from.example/", "own:/path"],
        "same-origin": [undefined, undefined, "own:/path"],
        "strict-origin": ["http://from.example/", undefined, "own:/"],
        "strict-origin-when-cross-origin": ["http://from.example/", undefined, "own:/path"],
        "unsafe-url": ["http://from.example/path", "https://from.example/path", "own:/path"],
      };
      for (const [name, parts] of Object.entries(expected)) {
        const referrerPolicy = name as ReferrerPolicy;
        const found: (string | undefined)[] = [];
        for (const from of [foreign, secure, own])
          found.push(await told({ ...from, referrerPolicy }));
        expect(found, name).to.deep.equal(parts);
      }
    });

    it("cookies have the fields they are given", async () => {
      const url = site.page("/jar", "<script>document.title = document.cookie</script>");
      const nextYear = Math.round(Date.now() / 1_000) + 365 * 86_400;
      const cookies = [
        { name: "kept", value: "1", expires: nextYear, sameSite: "Lax" as const, path: "/jar" },
        { name: "session", value: "2", expires: -1, priority: "High" as const },
        { name: "hidden", value: "3", httpOnly: true, sourceScheme: "NonSecure" as const },
        { name: "gone", value: "4", expires: 1 },
        { name: "secure", value: "5", secure: true, url: "https://from.example/" },
        { name: "apart", value: "6", path: "/jar/deeper" },
      ];
      const pdf = await print(pool, { url, cookies });
      expect(pdf.title.split("; ").sort()).to.deep.equal(["kept=1", "session=2"]);
      const sent = site.headersOf("/jar").cookie?.split("; ").sort();
      expect(sent).to.deep.equal(["hidden=3", "kept=1", "session=2"]);
    });

    it("addStyleTag and addScriptTag work by content and by url, on a page whose policy forbids them", async () => {
      const url = site.page("/strict", (_, response) => {
        response.setHeader("Content-Security-Policy", "default-src 'none'");
        response.end("<p>1<p>2");
      });
      other.page("/tag.js", (_, response) => {
        response.setHeader("Content-Type", "text/javascript");
        response.end(`document.title += " url"`);
      });
      other.page("/tag.css", (_, response) => {
        response.setHeader("Content-Type", "text/css");
        response.end("p { break-after: page }");
      });
      const pdf = await print(pool, {
        url,
        addScriptTag: [
          { content: `document.title = "content"` },
          { url: `${other.url}/tag.js`, id: "tag" },
          { content: `document.title += " " + document.querySelector("#tag").id`, type: "module" },
        ],
        addStyleTag: [
          { url: `${other.url}/tag.css` },
          { content: "p:first-of-type { break-after: page }" },
        ],
      });
      expect(pdf.title).to.equal("content url tag");
      expect(pdf.trailer.pages).to.equal(2);
    });

    it("addScriptTag that cannot be loaded fails, and not with bestAttempt", async () => {
      const request = { url: site.url, addScriptTag: [{ url: "http://127.0.0.3:1/none.js" }] };
      expect((await refusalOf(print(pool, request))).code).to.equal("network_failed");
      expect((await print(pool, { ...request, bestAttempt: true })).title).to.equal("a page");
    });

    it("a site's dialogs, downloads, popups and service workers have no effect", async () => {
      const url = site.page(
        "/pushy",
        `<title>pushy</title><a download href="/file">x</a><script>
          alert(1); if (confirm(2)) document.title = "confirmed"; prompt(3); print();
          open("/popup"); open("/popup", "_blank", "noopener");
          document.querySelector("a").click();
          navigator.serviceWorker?.register("/worker.js");
          onbeforeunload = () => "stay";
        </script>`,
      );
      site.page("/file", (_, response) => {
        response.setHeader("Content-Disposition", "attachment");
        response.end("x");
      });
      expect((await print(pool, { url, gotoOptions: { waitUntil: "load" } })).title).to.equal(
        "pushy",
      );
      expect(site.paths).to.not.include("/popup");
    });

    it("a page that leaves for where it may not go, while it is waited for, is no page", async () => {
      site.page("/never", () => {});
      for (const to of ["http://127.0.0.3:9/", "http://127.0.0.2:9/"]) {
        const leave = `<script>setTimeout(() => { location.href = "${to}" }, 100)</script>`;
        const url = site.page("/leaving", `<title>x</title><img src="/never">${leave}`);
        const { code } = await refusalOf(print(pool, { url }));
        // On a busy machine the page may navigate while it is being evaluated or printed. Then one of the other codes
        // is correct.
        const busy = ["page_navigated_away", "page_not_printable"];
        expect(code, to).to.be.oneOf(["address_refused", ...busy]);
      }
    });

    it("little time for the print is enough for an image that comes within it", async () => {
      const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>';
      site.page("/slow.svg", (_, response) => {
        response.setHeader("Content-Type", "image/svg+xml");
        setTimeout(() => response.end(svg), 500);
      });
      const onload = `<script>onload = () => document.title += " load"</script>`;
      const url = site.page("/slow", `<title>x</title><img src="/slow.svg">${onload}`);
      const pdf = await print(pool, { url, pdfOptions: { timeout: 6_000 } });
      expect(pdf.title).to.equal("x load");
    });

    it("a download is no page", async () => {
      const url = site.page("/archive", (_, response) => {
        response.writeHead(200, { "Content-Type": "application/zip" }).end("PK");
      });
      expect((await refusalOf(print(pool, { url }))).code).to.equal("navigation_timed_out");
    });

    it("WebSockets reach the site through the proxy", async () => {
      const sockets = new WebSocketServer({ server: site.server });
      sockets.on("connection", (socket) => socket.send("hi"));
      const url = site.page(
        "/socket",
        `<script>new WebSocket(location.href.replace("http", "ws")).onmessage = (event) => {
          document.title = event.data; document.body.append(document.createElement("b")) }</script><body>`,
      );
      const gotoOptions = { waitUntil: "networkidle0" as const };
      const pdf = await print(pool, { url, gotoOptions, waitForSelector: { selector: "b" } });
      sockets.close();
      expect(pdf.title).to.equal("hi");
    });
  });
});

function countsOf(bytes: Buffer): number[] {
  return [...bytes.toString("latin1").matchAll(/\/Count (\d+)/g)].map(([, count]) => Number(count));
}
