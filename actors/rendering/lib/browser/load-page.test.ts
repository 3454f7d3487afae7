import type { ServerResponse } from "node:http";
import { expect } from "chai";
import type { CDPSession, Page } from "puppeteer-core";
import { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { HoldingClock } from "../../../../scripts/testing/holding-clock.ts";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { LOAD_EVENT_MS } from "../../workers/render/page-ready.ts";
import { LOAD_SOON_MS } from "../../workers/render/pdf-stream.ts";
import { loadPage } from "./load-page.ts";
import { NETWORK_POLLING_MS, NETWORK_QUIET_MS } from "./wait-for-quiet.ts";

/**
 * Returns a page that changes after `ms`. On a busy machine the clock of a page is late by seconds, so a test that
 * expects the change uses a time well below the limit.
 */
const doneAfter = (ms: number) => `<title>early</title><script>
  setTimeout(() => { document.title = "late"; document.body.append(document.createElement("b")) }, ${ms})</script><body>`;

const DOCUMENT_LOADED = { waitUntil: "domcontentloaded" as const };

/** Options of a print that waits for images without the time limit, which a busy machine may exceed. */
const unhurried = () => ({ clock: new HoldingClock(LOAD_SOON_MS) });

describe("loadPage", function () {
  this.timeout(120_000);
  const pool = openPool();
  let site: WebSite;

  before(async () => {
    [site] = await Promise.all([WebSite.start(), pool.start()]);
    site.page("/slow.png", (_, response) => setTimeout(() => response.end(), 300));
    site.page("/never", () => {});
    site.page("/endless", (_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: 1\n\n");
    });
  });
  after(async () => {
    await Promise.all([pool.close(), site[Symbol.asyncDispose]()]);
  });

  describe("load events", () => {
    const slow = (wait: string) =>
      `<title>early</title><img src="${site.url}/slow.png"><script>on${wait} = () => document.title = "${wait}"</script>`;

    it("domcontentloaded does not wait for images before the other waits", async () => {
      const html = (host: string) => `<title>x</title><img src="${host}/held.png"><script>
        onload = () => document.title += " load"</script>`;
      const content = `document.title += " tag"; new Image().src = "${site.url}/go"`;
      const addScriptTag = [{ content }];
      const held: ServerResponse[] = [];
      // Holds both responses until both images are requested, in either order. So the first image loads only after
      // the tag was added.
      const hold = (_: unknown, response: ServerResponse) => {
        held.push(response);
        if (held.length === 2) for (const one of held.splice(0)) one.end();
      };
      for (const path of ["/held.png", "/go"]) site.page(path, hold);
      const asked = { addScriptTag, gotoOptions: DOCUMENT_LOADED };
      const printed = await print(pool, { html: html(site.url), ...asked }, unhurried());
      expect(printed.title).to.equal("x tag load");
      const url = site.page("/images", html(""));
      expect((await print(pool, { url, ...asked }, unhurried())).title).to.equal("x tag load");
    });

    it("the load event comes before the print, even where Chromium is asked to print as the last image ends", async () => {
      const url = site.page(
        "/images",
        `<title>x</title><img src="/held.png"><script>
          onload = () => document.title += " load"</script>`,
      );
      const content = `new Image().src = "${site.url}/go"`;
      for (const ms of Array.from({ length: 36 }, (_, index) => 4 + (index % 6))) {
        const held: ServerResponse[] = [];
        const release = () => {
          for (const one of held) one.end();
        };
        const hold = (_: unknown, response: ServerResponse) => {
          held.push(response);
          if (held.length === 2) setTimeout(release, ms);
        };
        for (const path of ["/held.png", "/go"]) site.page(path, hold);
        const asked = { addScriptTag: [{ content }], gotoOptions: DOCUMENT_LOADED };
        const { title } = await print(pool, { url, ...asked }, unhurried());
        expect(title, `${ms} ms`).to.equal("x load");
      }
    });

    it("what has no load event soon is printed without: images are waited for a second, all else for a moment", async () => {
      const waitsOf = async (html: string) => {
        let waits = 0;
        const wait: Clock["wait"] = (ms, signal) => {
          if (ms === LOAD_EVENT_MS) waits += 1;
          return systemClock.wait(ms, signal);
        };
        const url = site.page("/unfinished", `<title>x</title>${html}`);
        const { title } = await print(
          pool,
          { url, gotoOptions: DOCUMENT_LOADED },
          { clock: { ...systemClock, wait } },
        );
        expect(title).to.equal("x");
        return waits;
      };
      expect(await waitsOf('<script async src="/never"></script>')).to.be.at.most(1);
      const opened = `document.open(); document.write("<title>x</title>opened")`;
      expect(await waitsOf(`<script>onload = () => { ${opened} }</script>`)).to.be.at.most(1);
      const most = LOAD_SOON_MS / LOAD_EVENT_MS;
      expect(await waitsOf('<img src="/never">')).to.be.at.most(most);
    });

    it("what hangs is cut off before the print's time is over", async () => {
      const html = `<title>x</title><img src="${site.url}/never"><link rel=icon href=x>`;
      expect((await print(pool, { html, pdfOptions: { timeout: 10_000 } })).title).to.equal("x");
      const url = site.page("/hung", html);
      expect((await print(pool, { url, actionTimeout: 10_000 })).title).to.equal("x");
    });

    it("load waits for images, alone and in a list, by url and by html", async () => {
      const url = site.page("/images", slow("load"));
      const gotoOptions = { waitUntil: ["domcontentloaded" as const, "load" as const] };
      expect((await print(pool, { url, gotoOptions })).title).to.equal("load");
      const html = slow("load");
      expect((await print(pool, { html, gotoOptions: { waitUntil: "load" } })).title).to.equal(
        "load",
      );
    });

    it("networkidle0 waits for what begins after the load, by url and by html", async () => {
      const html = `<title>early</title><script>
        onload = () => setTimeout(() => fetch("${site.url}/begun-late", { mode: "no-cors" })
          .then(() => document.title = "fetched"), 50)</script>`;
      const url = site.page("/late", html);
      const gotoOptions = { waitUntil: "networkidle0" as const };
      for (const page of [{ url }, { html }]) {
        const begun = Promise.withResolvers<void>();
        site.page("/begun-late", (_, response) => {
          begun.resolve();
          setTimeout(() => response.end(), 300);
        });
        // The page's own clock may be late by more than the quiet time. So this clock ends the quiet time only after
        // the request has begun.
        const clock: Clock = {
          ...systemClock,
          async wait(ms, signal) {
            if (ms === NETWORK_QUIET_MS) await begun.promise;
            await systemClock.wait(ms, signal);
          },
        };
        expect((await print(pool, { ...page, gotoOptions }, { clock })).title).to.equal("fetched");
      }
    });

    it("networkidle2 lets two requests stay open, networkidle0 none", async () => {
      const url = site.page(
        "/open",
        `<title>open</title><script>fetch("/never"); fetch("/never?2")</script>`,
      );
      const gotoOptions = { waitUntil: "networkidle2" as const, timeout: 20_000 };
      expect((await print(pool, { url, gotoOptions })).title).to.equal("open");
      const none = { waitUntil: "networkidle0" as const, timeout: 900 };
      expect((await refusalOf(print(pool, { url, gotoOptions: none }))).code).to.equal(
        "navigation_timed_out",
      );
    });

    it("networkidle2 waits for requests that follow one another, and not before the browser's own event", async () => {
      site.page("/step", (_, response) => setTimeout(() => response.end("x"), 50));
      const chain = `(async () => {
        for (let step = 0; step < 15; step++) await (await fetch("/step?" + step)).text();
        document.title = "late";
      })()`;
      for (const script of [chain, `onload = () => ${chain}`]) {
        const url = site.page("/chain", `<title>early</title><script>${script}</script>`);
        await using context = await pool.newContext(new AbortController().signal);
        const { page } = context;
        const session = await page.createCDPSession();
        const events: string[] = [];
        await session.send("Page.enable");
        session.on("Page.lifecycleEvent", ({ name }) => void events.push(name));
        await session.send("Page.setLifecycleEventsEnabled", { enabled: true });
        context.hearAll();
        await context.authorize();
        events.length = 0;
        const parameters = PdfRequest.parse({ url, gotoOptions: { waitUntil: "networkidle2" } });
        const limits = { signal: new AbortController().signal, clock: systemClock };
        using _ = await loadPage(context, parameters, limits);
        expect(events).to.include("networkAlmostIdle");
        expect(await page.title()).to.equal("late");
      }
    });

    it("networkidle2 takes a page that polls for idle after a while", async () => {
      const url = site.page(
        "/polls",
        `<title>polls</title><script>setInterval(() => fetch("/poll"), 100)</script>`,
      );
      const gotoOptions = { waitUntil: "networkidle2" as const, timeout: 45_000 };
      const startedAt = performance.now();
      expect((await print(pool, { url, gotoOptions })).title).to.equal("polls");
      expect(performance.now() - startedAt).to.be.at.least(NETWORK_POLLING_MS);
    });

    it("networkidle0 does not wait for event streams", async () => {
      const url = site.page(
        "/stream",
        `<title>stream</title><script>new EventSource("/endless")</script>`,
      );
      const gotoOptions = { waitUntil: "networkidle0" as const, timeout: 20_000 };
      expect((await print(pool, { url, gotoOptions })).title).to.equal("stream");
    });
  });

  describe("timeouts", () => {
    it("gotoOptions.timeout ends a load; bestAttempt prints what has come", async () => {
      const url = site.page("/hanging", `<title>part</title><img src="/never">`);
      const gotoOptions = { waitUntil: "load" as const, timeout: 5_000 };
      const { code, details } = await refusalOf(print(pool, { url, gotoOptions }));
      expect(code).to.equal("navigation_timed_out");
      expect(details.browserMs).to.be.within(4_900, 40_000);
      const pdfOptions = { timeout: 10_000 };
      const pdf = await print(pool, { url, gotoOptions, pdfOptions, bestAttempt: true });
      expect(pdf.title).to.equal("part");
    });

    it("bestAttempt is no help where no document has come", async () => {
      const request = {
        url: `${site.url}/never`,
        gotoOptions: { timeout: 300 },
        bestAttempt: true,
      };
      expect((await refusalOf(print(pool, request))).code).to.equal("navigation_timed_out");
    });

    it("a script that never ends is ended", async () => {
      const gotoOptions = { timeout: 400 };
      const html = "<script>while (true) {}</script>";
      expect((await refusalOf(print(pool, { html, gotoOptions }))).code).to.equal(
        "navigation_timed_out",
      );
      const late = "<script>setTimeout(() => { while (true) {} })</script>";
      const request = { html: late, waitForTimeout: 50, actionTimeout: 400 };
      expect((await refusalOf(print(pool, request))).code).to.equal("wait_timed_out");
      const pdfOptions = { timeout: 400 };
      const printing = { html: late, waitForTimeout: 50, pdfOptions };
      expect((await refusalOf(print(pool, printing))).code).to.equal("wait_timed_out");
    });

    it("a deadline that passes is a deadline exceeded, in every phase", async () => {
      const phases = [
        { url: `${site.url}/never` },
        { html: "<p>x", waitForSelector: { selector: "b" } },
        { html: "<p>x", waitForTimeout: 60_000 },
        { html: "<script>setTimeout(() => { while (true) {} })</script>", waitForTimeout: 50 },
      ];
      for (const phase of phases) {
        // On a busy machine the deadline may pass before there is a page. Such a print is repeated.
        const browserMs = await until("the deadline passes with a page", async () => {
          const { code, details } = await refusalOf(print(pool, phase, { deadlineMs: 2_000 }));
          expect(code).to.equal("deadline_exceeded");
          return details.browserMs;
        });
        expect(browserMs).to.be.within(1, 40_000);
      }
      expect((await refusalOf(print(pool, { html: "x" }, { deadlineMs: -1 }))).code).to.equal(
        "deadline_exceeded",
      );
    });

    it("a caller who leaves ends the task", async () => {
      const leaving = new AbortController();
      const asked = new Promise<void>((resolve) => {
        site.page("/left", (request) => {
          request.once("close", resolve);
          leaving.abort();
        });
      });
      const printing = print(pool, { url: `${site.url}/left` }, { signal: leaving.signal });
      expect((await refusalOf(printing)).code).to.equal("cancelled");
      await asked;
    });
  });

  describe("waits", () => {
    it("waitForSelector waits for an element, for it to be seen, and for it to go", async () => {
      const wait = (waitForSelector: { selector: string; visible?: boolean; hidden?: boolean }) =>
        print(pool, { html: doneAfter(300), waitForSelector });
      expect((await wait({ selector: "b" })).title).to.equal("late");
      const seenAfter = (ms: number) =>
        `<p hidden>x<script>setTimeout(() => { document.title = "seen"; document.querySelector("p").hidden = false }, ${ms})</script>`;
      const there = { html: seenAfter(60_000), waitForSelector: { selector: "p" } };
      expect((await print(pool, there)).title).to.equal("");
      const visible = { html: seenAfter(200), waitForSelector: { selector: "p", visible: true } };
      expect((await print(pool, visible)).title).to.equal("seen");
      const going = `<p>x<script>setTimeout(() => { document.title = "gone"; document.querySelector("p").remove() }, 200)</script>`;
      const hidden = { selector: "p", hidden: true };
      expect((await print(pool, { html: going, waitForSelector: hidden })).title).to.equal("gone");
    });

    it("waitForSelector that does not come fails in time, and not with bestAttempt", async () => {
      const request = {
        html: "<title>x</title>",
        waitForSelector: { selector: "b", timeout: 200 },
      };
      expect((await refusalOf(print(pool, request))).code).to.equal("wait_timed_out");
      expect((await print(pool, { ...request, bestAttempt: true })).title).to.equal("x");
    });

    it("waitForSelector refuses what is no selector", async () => {
      const request = { html: "<p>x", waitForSelector: { selector: "p[" }, bestAttempt: true };
      const { code, details } = await refusalOf(print(pool, request));
      expect(code).to.equal("invalid_request");
      expect(details.faults?.[0]?.pointer).to.equal("/waitForSelector/selector");
    });

    it("waitForTimeout waits", async () => {
      const late = { html: doneAfter(100), waitForTimeout: 3_000 };
      expect((await print(pool, late)).title).to.equal("late");
      const early = { html: doneAfter(60_000), waitForTimeout: 0 };
      expect((await print(pool, early)).title).to.equal("early");
    });
  });

  describe("navigation", () => {
    it("redirects are followed, by the site and by script", async () => {
      site.page("/here", "<title>here</title><b></b>");
      const moved = site.page("/moved", (_, response) => {
        response.writeHead(302, { Location: "/here" }).end();
      });
      expect((await print(pool, { url: moved })).title).to.equal("here");
      const script = site.page("/script", `<script>location.href = "/here"</script>`);
      const waitForSelector = { selector: "b" };
      expect((await print(pool, { url: script, waitForSelector })).title).to.equal("here");
    });

    it("a page of an error status is printed, if it has content", async () => {
      const url = site.page("/gone", (_, response) =>
        response.writeHead(410).end("<title>gone</title>"),
      );
      expect((await print(pool, { url })).title).to.equal("gone");
      const empty = site.page("/empty", (_, response) => response.writeHead(500).end());
      expect((await refusalOf(print(pool, { url: empty }))).code).to.equal("response_failed");
    });

    it("what the site does wrong has its code", async () => {
      const loop = site.page("/loop", (_, response) =>
        response.writeHead(302, { Location: "/loop" }).end(),
      );
      expect((await refusalOf(print(pool, { url: loop }))).code).to.equal("too_many_redirects");
      const cut = site.page("/cut", (request) => void request.socket.destroy());
      expect((await refusalOf(print(pool, { url: cut }))).code).to.equal("connection_closed");
      const none = "http://127.0.0.2:2/";
      expect((await refusalOf(print(pool, { url: none }))).code).to.equal("connection_refused");
      const unknown = "http://no-such-name.invalid/";
      expect((await refusalOf(print(pool, { url: unknown }))).code).to.equal("name_not_resolved");
      expect(
        (await refusalOf(print(pool, { url: "https://no-such-name.invalid/" }))).code,
      ).to.equal("name_not_resolved");
    });

    it("an address that is not fetched is refused, at once and after a redirect", async () => {
      for (const url of [
        "http://127.0.0.3/",
        "https://127.0.0.3/",
        "http://169.254.169.254/",
        "http://[::1]/",
      ]) {
        const { code, message } = await refusalOf(print(pool, { url }));
        expect(code).to.equal("address_refused");
        expect(message).to.match(/^Cannot load .*: its address is not one this service fetches$/);
      }
      for (const inside of ["http://127.0.0.3/", "https://127.0.0.3/"]) {
        const url = site.page("/inside", (_, response) =>
          response.writeHead(302, { Location: inside }).end(),
        );
        expect((await refusalOf(print(pool, { url, bestAttempt: true }))).code).to.equal(
          "address_refused",
        );
        const html = `<script>location.href = "${inside}"</script>`;
        const late = print(pool, { html, waitForTimeout: 10_000, bestAttempt: true });
        expect((await refusalOf(late)).code).to.equal("address_refused");
      }
    });

    it("so it is where puppeteer is told of redirects and answers late", async () => {
      for (const inside of ["http://127.0.0.3/", "https://127.0.0.3/"]) {
        const url = site.page("/inside", (_, response) =>
          response.writeHead(302, { Location: inside }).end(),
        );
        const { signal } = new AbortController();
        await using context = await pool.newContext(signal);
        await context.authorize();
        const told = delayAnswers(context.page);
        const loading = loadPage(context, PdfRequest.parse({ url }), {
          signal,
          clock: systemClock,
        });
        expect((await refusalOf(loading)).code).to.equal("address_refused");
        // Puppeteer may receive the response event only now.
        await until("puppeteer is told", () => told.count > 0);
      }
    });

    it("a subresource that is refused fails alone", async () => {
      const html = `<title>x</title><img src="http://127.0.0.3/" onerror="document.title = 'image failed'">`;
      const gotoOptions = { waitUntil: "load" as const };
      expect((await print(pool, { html, gotoOptions })).title).to.equal("image failed");
    });

    it("a site cannot pass itself off as refused", async () => {
      const url = site.page("/forged", (_, response) => {
        response.writeHead(403, { "X-Trunkline-Egress": "refused" }).end("<title>forged</title>");
      });
      expect((await print(pool, { url })).title).to.equal("forged");
    });

    it("files and the browser's own pages cannot be reached", async () => {
      for (const target of [
        "file:///etc/passwd",
        "chrome://version/",
        "view-source:http://127.0.0.2/",
      ]) {
        const url = site.page(
          "/leaving",
          `<title>stayed</title><script>location.href = "${target}"</script>
           <iframe src="${target}" onload="try { document.title = contentDocument.body.innerText || 'stayed' } catch {}"></iframe>
           <meta http-equiv="refresh" content="0;url=${target}">`,
        );
        expect((await print(pool, { url, waitForTimeout: 200 })).title).to.equal("stayed");
      }
    });
  });
});

/**
 * Delays response events, as happens on a busy machine: they come from another process than the end of the
 * navigation.
 */
function delayAnswers(page: Page): { count: number } {
  const session = (page as unknown as { _client(): CDPSession })._client();
  const emit = session.emit.bind(session);
  const told = { count: 0 };
  session.emit = (name, event) => {
    if (name !== "Network.responseReceivedExtraInfo") return emit(name, event);
    told.count += 1;
    setTimeout(() => emit(name, event), 200);
    return true;
  };
  return told;
}
