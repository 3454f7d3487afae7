import { expect } from "chai";
import type { z } from "zod";
import { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { HeldPage } from "../../workers/render/held-page.ts";

/**
 * Chromium changes the process of a page at its first address and when the page navigates to another site. The
 * emulation must survive that.
 */
describe("emulation of a page that comes from an address", function () {
  this.timeout(120_000);
  const pool = openPool();
  let site: WebSite;
  before(async () => {
    [site] = await Promise.all([WebSite.start(), pool.start()]);
  });
  after(async () => {
    await Promise.all([pool.close(), site[Symbol.asyncDispose]()]);
  });

  /** Loads the page as a request would, and returns the value of the expression in the page. */
  async function evaluate(request: z.input<typeof PdfRequest>, expression: string) {
    const task = { action: "capture", endsAt: systemClock.monotonic() + 50_000 } as const;
    const { signal } = new AbortController();
    await using held = await HeldPage.open(pool, task, { signal, clock: systemClock });
    using _ = await held.load(PdfRequest.parse(request));
    return await held.context.evaluate(expression);
  }

  it("emulateMediaType holds, for scripts and in the PDF", async () => {
    const url = site.page(
      "/media",
      `<title>x</title><style>@media screen { p { break-after: page } }</style><p>1<p>2<p>3
       <script>document.title = matchMedia("print").matches ? "print" : "screen"</script>`,
    );
    expect(await evaluate({ url, emulateMediaType: "print" }, "document.title")).to.equal("print");
    const isPrint = `matchMedia("print").matches`;
    expect(await evaluate({ url, emulateMediaType: "print" }, isPrint)).to.equal(true);
    expect(await evaluate({ url }, isPrint)).to.equal(false);
    expect((await print(pool, { url, emulateMediaType: "screen" })).trailer.pages).to.equal(3);
    expect((await print(pool, { url })).trailer.pages).to.equal(1);
  });

  it("viewport holds, with touch, scale and orientation", async () => {
    const url = site.page(
      "/viewport",
      "<!doctype html><meta name=viewport content=width=device-width>",
    );
    const viewport = {
      width: 400,
      height: 700,
      deviceScaleFactor: 2,
      isMobile: true,
      hasTouch: true,
    };
    const shown = "[innerWidth, innerHeight, devicePixelRatio, navigator.maxTouchPoints > 0]";
    expect(await evaluate({ url, viewport }, shown)).to.deep.equal([400, 700, 2, true]);
  });

  it("userAgent and setExtraHTTPHeaders hold, for the page and its requests", async () => {
    const url = site.page("/agent", `<img src="/agent.png">`);
    const request = {
      url,
      userAgent: "Emulated/1.0",
      setExtraHTTPHeaders: { "X-Extra": "yes" },
      gotoOptions: { waitUntil: "load" as const },
    };
    expect(await evaluate(request, "navigator.userAgent")).to.equal("Emulated/1.0");
    for (const path of ["/agent", "/agent.png"]) {
      const headers = site.headersOf(path);
      expect(headers, path).to.include({ "user-agent": "Emulated/1.0", "x-extra": "yes" });
    }
  });

  it("setExtraHTTPHeaders with User-Agent is the browser's name, for scripts too", async () => {
    const url = site.page("/named", `<img src="/named.png">`);
    const setExtraHTTPHeaders = { "user-AGENT": "Named/2.0", "X-Extra": "yes" };
    const request = { url, setExtraHTTPHeaders, gotoOptions: { waitUntil: "load" as const } };
    expect(await evaluate(request, "navigator.userAgent")).to.equal("Named/2.0");
    for (const path of ["/named", "/named.png"]) {
      const headers = site.headersOf(path);
      expect(headers, path).to.include({ "user-agent": "Named/2.0", "x-extra": "yes" });
    }
  });

  it("setExtraHTTPHeaders holds for fields that browsers write too", async () => {
    const url = site.page("/fields", `<img src="/fields.png">`);
    const fields = {
      "accept-encoding": "identity",
      "accept-language": "xx",
      authorization: "Bearer one",
      "cache-control": "max-age=7",
      cookie: "one=two",
      dnt: "1",
      from: "one@example.com",
      "if-none-match": '"one"',
      range: "bytes=0-100000",
      via: "1.1 one",
      "x-forwarded-for": "192.0.2.1",
    };
    await print(pool, { url, setExtraHTTPHeaders: fields, gotoOptions: { waitUntil: "load" } });
    for (const path of ["/fields", "/fields.png"]) {
      const seen = site.headersOf(path);
      const kept = Object.keys(fields).map((name) => [name, seen[name]]);
      expect(Object.fromEntries(kept), path).to.deep.equal(fields);
    }
  });

  it("setJavaScriptEnabled holds", async () => {
    const url = site.page(
      "/script",
      `<title>without</title><script>document.title = "with"</script>`,
    );
    expect(await evaluate({ url }, "document.title")).to.equal("with");
    const off = { url, setJavaScriptEnabled: false };
    expect(await evaluate(off, "document.title")).to.equal("without");
  });

  it("added tags work against the page's own policy", async () => {
    const url = site.page("/policy", (_, response) => {
      response.setHeader("Content-Security-Policy", "default-src 'none'");
      response.end("<title>x</title>");
    });
    const addScriptTag = [{ content: `document.title = "added"` }];
    expect(await evaluate({ url, addScriptTag }, "document.title")).to.equal("added");
  });
});
