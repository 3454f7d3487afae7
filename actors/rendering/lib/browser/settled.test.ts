import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { LOOK_MS, QUIET_AFTER_CHANGE_MS, SETTLE_MS } from "../../../../schemas/rendering/limits.ts";
import { openPageReader, type PageReader } from "../../../../scripts/testing/page-reader.ts";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { DRAWING_SAMPLE_MS, STILL } from "./drawing-settled.ts";
import { settled } from "./settled.ts";
import { RequestsInFlight } from "./wait-for-quiet.ts";

/** Scripts of test pages, by the text that the page shows at the end. Each page shows "first" at the beginning. */
const PAGES: Record<string, string> = {
  "chained fetches": `(async () => {
    for (const step of [1, 2, 3]) show(await (await fetch("/json?" + step)).text());
    show("last");
  })()`,
  "a fetch that begins after a while, and another long after its answer": `setTimeout(async () => {
    show(await (await fetch("/json")).text());
    setTimeout(async () => { await fetch("/json"); show("last"); }, 100);
  }, 50)`,
  "changes one after the other": `let left = 20;
    const timer = setInterval(() => { show(left); if (--left === 0) { clearInterval(timer); show("last"); } }, 40)`,
  "a worker": `const end = Date.now() + 400;
  const worker = new Worker(URL.createObjectURL(new Blob([
    "while (Date.now() < " + end + "); postMessage('last')"
  ])));
  worker.onmessage = ({ data }) => show(data)`,
  "changes in an open shadow root": `const host = document.body.appendChild(document.createElement("div"));
    const shadow = host.attachShadow({ mode: "open" });
    shadow.innerHTML = "<i>x</i>";
    let left = 20;
    const timer = setInterval(() => {
      shadow.firstChild.textContent = left;
      if (--left === 0) { clearInterval(timer); show("last"); }
    }, 40)`,
  "a finite animation": `const end = document.querySelector("p").animate({ opacity: [0, 1] }, 600).finished;
    end.then(() => show("last"))`,
  "a canvas that is drawn over time": `const canvas = document.body.appendChild(document.createElement("canvas"));
    const drawing = canvas.getContext("2d");
    const begun = performance.now();
    const frame = () => {
      drawing.fillRect(0, 0, (performance.now() - begun) / 5, 50);
      if (performance.now() - begun < 600) requestAnimationFrame(frame); else show("last");
    };
    frame()`,
  "a page that leads on": `if (!location.search) location.href = "?on"; else show("last")`,
  "a frame of the same site that changes": `const frame = document.body.appendChild(document.createElement("iframe"));
    frame.srcdoc = "<p>x<script>let n = 0; const t = setInterval(() => { document.querySelector('p').textContent = n;" +
      "if (++n > 19) { clearInterval(t); parent.document.querySelector('p').textContent += ' last'; } }, 40)<\\/script>"`,
};

/** Pages that never settle. Each is read at most SETTLE_MS after its load event. */
const ENDLESS: Record<string, string> = {
  "an endless animation": `document.querySelector("p").animate({ opacity: [0, 1] }, { duration: 100, iterations: Infinity })`,
  "a clock": `setInterval(() => show(Date.now()), 50)`,
  "an event stream": `new EventSource("/events")`,
  polling: `setInterval(() => fetch("/json"), 100)`,
};

describe("waiting until a page has settled", function () {
  this.timeout(120_000);
  let site: WebSite;
  let reader: PageReader;
  before(async () => {
    site = await WebSite.start();
    reader = openPageReader();
    site.page("/json", async (_, response) => {
      await sleep(60);
      response.end("answer");
    });
    site.page("/events", (_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: 1\n\n");
    });
    site.page("/never.png", () => {});
  });
  after(async () => {
    await reader.close();
    await site[Symbol.asyncDispose]();
  });

  const page = (script: string) =>
    site.page(
      "/page",
      `<!doctype html><p>first</p><script>
        const show = (text) => { document.querySelector("p").textContent += " " + text; };
        ${script}</script>`,
    );
  const shown = async (url: string, request: object = {}) => {
    const asked = { url, elements: [{ selector: "p" }], ...request };
    const startedAt = performance.now();
    const { result } = await reader.run("scrape", asked);
    return { text: result[0].results[0].text, ms: performance.now() - startedAt };
  };

  for (const [name, script] of Object.entries(PAGES)) {
    it(`has ${name} to the end, also where nothing is named`, async () => {
      const url = page(script);
      // A settle timeout below the timeout of the navigation, so that a page on a busy machine is late but does not
      // fail.
      const gotoOptions = { settleTimeout: 20_000 };
      expect((await shown(url, { gotoOptions })).text).to.match(/^first.* last$/);
    });
  }

  for (const [name, script] of Object.entries(ENDLESS)) {
    it(`goes on with ${name}`, async () => {
      const gotoOptions = { waitUntil: "settled", settleTimeout: 400 };
      expect((await shown(page(script), { gotoOptions })).text).to.match(/^first/);
    });
  }

  it("a clock ends the wait at settleTimeout, at most SETTLE_MS where nothing is named", async () => {
    const url = page(ENDLESS["a clock"] ?? "");
    // The machine may stand still during one of the runs, so the shorter of two counts.
    const quickest = async (request: object) =>
      Math.min((await shown(url, request)).ms, (await shown(url, request)).ms);
    const shortMs = await quickest({ gotoOptions: { settleTimeout: 200 } });
    const presetMs = await quickest({});
    expect(presetMs - shortMs).to.be.within((SETTLE_MS - 200) / 2, (SETTLE_MS - 200) * 5);
  });

  it("the driver's names keep the driver's meaning", async () => {
    // The response comes only after the page was read, however slow the machine is.
    const read = Promise.withResolvers<void>();
    site.page("/held", (_, response) => void read.promise.then(() => response.end("answer")));
    const url = page(`fetch("/held").then(() => show("last"))`);
    const gotoOptions = { waitUntil: "domcontentloaded" };
    expect((await shown(url, { gotoOptions })).text).to.equal("first");
    read.resolve();
  });

  describe("a static page", () => {
    let pool: ReturnType<typeof openPool>;
    before(() => {
      pool = openPool();
    });
    after(() => pool[Symbol.asyncDispose]());

    /** Counts the looks of `settled` and returns its waits; each look has one. Calls `looking` when a look has begun. */
    async function observe(source: string, { script = true, looking = () => {} } = {}) {
      const signal = new AbortController().signal;
      await using context = await pool.newContext(signal);
      const { page } = context;
      let looks = 0;
      const waits: number[] = [];
      const wait: Clock["wait"] = (ms, ended) => {
        waits.push(ms);
        return systemClock.wait(ms, ended);
      };
      const clock = { ...systemClock, wait };
      const requests = new RequestsInFlight(page, clock);
      await context.authorize();
      await page.setJavaScriptEnabled(script);
      if (source.startsWith("http")) await page.goto(source, { waitUntil: "domcontentloaded" });
      else await page.setContent(source, { waitUntil: "load" });
      const evaluate = (expression: string) => {
        looks += 1;
        const evaluated = context.evaluate(expression);
        looking();
        return evaluated;
      };
      await settled({ page, evaluate }, { requests, settleMs: SETTLE_MS, signal, clock });
      return { looks, waits };
    }

    /** A page whose style sheet is answered 50 ms after the page is looked at. */
    function styled(style: string) {
      const looked = Promise.withResolvers<void>();
      const sheet = site.page("/late.css", (_, response) => {
        response.writeHead(200, { "Content-Type": "text/css", "Cache-Control": "no-store" });
        void looked.promise.then(() => response.end(style));
      });
      const url = site.page("/styled", (_, response) => {
        response.writeHead(200, { "Content-Type": "text/html" });
        response.end(`<!doctype html><link rel=stylesheet href="${sheet}"><p>static`);
      });
      return { url, looking: () => void sleep(50).then(looked.resolve) };
    }

    it("is looked at once, and not waited for", async () => {
      // The limit of the one look.
      expect((await observe("<p>static")).waits).to.deep.equal([LOOK_MS]);
      expect((await observe("<p>x<script></script>")).waits.length).to.be.above(2);
    });

    for (const script of [true, false]) {
      it(`is looked at once while it loads, ${script ? "with" : "without"} JavaScript`, async () => {
        // On a busy machine the end of the request may be reported late, so the best of a few tries counts.
        let looks = Number.POSITIVE_INFINITY;
        for (let tries = 0; tries < 5 && looks > 1; tries++) {
          const { url, looking } = styled("p { color: red }");
          looks = Math.min(looks, (await observe(url, { script, looking })).looks);
        }
        expect(looks).to.equal(1);
      });
    }

    for (const [name, part] of [
      ["a picture that loads only where it is seen", "<img loading=LAZY>"],
      ["an address to which it leads on", `<meta http-equiv=Refresh content="9;url=/">`],
    ]) {
      it(`is looked at again if it has ${name}`, async () => {
        expect((await observe(`<p>x${part}`)).looks).to.be.above(1);
      });
    }

    it("is looked at again if a style sheet that comes later moves it", async () => {
      const { url, looking } = styled(
        "@keyframes fade { from { opacity: 0 } } p { animation: fade 0.2s }",
      );
      expect((await observe(url, { looking })).looks).to.be.above(1);
    });
  });

  describe("waitForFunction", () => {
    const html = `<p>first<script>setTimeout(() => { window.isReady = true }, 300)</script>`;
    const run = (waitForFunction: object) =>
      reader.run("content", {
        html: `${html}<meta http-equiv="Content-Security-Policy" content="script-src 'unsafe-inline'">`,
        gotoOptions: { waitUntil: "load" },
        waitForFunction,
      });
    const refused = (waitForFunction: object) =>
      reader.refused("content", { html, waitForFunction });

    it("takes expressions and functions, also async ones, and sees the page's own variables", async () => {
      for (const text of [
        "window.isReady",
        "() => window.isReady",
        "async () => { await 0; return isReady; }",
        "function () { return window.isReady } // as written",
      ]) {
        const { result } = await run({ function: text, polling: 20 });
        expect(result, text).to.contain("first");
      }
    });

    it("ends with wait_timed_out, and says what the function threw last", async () => {
      const late = await refused({ function: "false", timeout: 300 });
      expect(late.code).to.equal("wait_timed_out");
      expect(late.message).to.equal("Cannot wait: the function was not true in 300 ms");
      // Long enough for one call on a machine that stands still meanwhile.
      const thrown = await refused({ function: "() => missing.thing", timeout: 4_000 });
      expect(thrown.message).to.contain("it threw ReferenceError: missing is not defined");
      const endless = { function: "() => new Promise(() => {})", timeout: 300 };
      expect((await refused(endless)).code).to.equal("wait_timed_out");
      const { result } = await reader.run("content", {
        ...{ html, bestAttempt: true },
        waitForFunction: { function: "false", timeout: 300 },
      });
      expect(result).to.contain("first");
    });

    it("names the field where the text is no JavaScript", async () => {
      const { code, details } = await refused({ function: "() => {" });
      expect([code, details.faults?.[0]?.pointer]).to.deep.equal([
        "invalid_request",
        "/waitForFunction/function",
      ]);
      expect(details.faults?.[0]?.message).to.contain("SyntaxError");
    });
  });
});

describe("settled()", () => {
  it("does not count a time in which the machine stood still, because the page could not change then", async () => {
    let now = 0;
    let changedAt = 0;
    let samples = 0;
    /** After the second sample the machine stands still. Only after the third one the page runs and changes. */
    const clock: Clock = {
      ...systemClock,
      monotonic: () => now,
      async wait(ms) {
        if (ms > DRAWING_SAMPLE_MS) return new Promise(() => {});
        now += samples === 2 ? 2_000 : ms;
        if (samples === 3) changedAt = now;
      },
    };
    const page = Object.assign(new EventEmitter(), { workers: () => [] });
    const evaluate = async () => {
      samples += 1;
      const idleMs = now - changedAt;
      return { isLoaded: true, isStatic: false, idleMs, hasChanged: true, drawn: STILL };
    };
    const requests = new RequestsInFlight(page as never, clock);
    const { signal } = new AbortController();
    const context = { page, evaluate } as unknown as Parameters<typeof settled>[0];
    await settled(context, { requests, settleMs: SETTLE_MS, signal, clock });
    expect(changedAt).to.be.above(2_000);
    expect(now - changedAt).to.be.at.least(QUIET_AFTER_CHANGE_MS);
  });
});
