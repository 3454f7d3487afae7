import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { longestTurn } from "../../../../scripts/testing/processor-time.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { TASK_HEARTBEAT_MS } from "../../../runtime/workers/task-lease.ts";
import { BrowserDiedError } from "./browser-died-error.ts";
import { POOL_LIMITS } from "./pool-limits.ts";

/** The longest time that heartbeats allow the event loop to be blocked. Usually it is 50 to 200 ms. */
const TURN_MS_MAX = TASK_HEARTBEAT_MS;

/**
 * A clock whose time never changes. The event budget of a page grows with time, and on a busy machine a page creates
 * events slowly. With this clock the page has only its initial budget.
 */
const standing: Clock = { ...systemClock, monotonic: () => 0 };
const FLOOD_MS_MAX = 120_000;

const busy = (work: string) =>
  `<title>busy</title><script>setInterval(() => { ${work} }, 0)</script>`;
const inWorkers = (work: string) => `<title>busy</title><script>
  const url = URL.createObjectURL(new Blob([${JSON.stringify(`setInterval(() => { ${work} }, 0)`)}]));
  for (let i = 0; i < 8; i++) new Worker(url)</script>`;
const FETCHES = 'for (let i = 0; i < 2000; i++) fetch("data:," + i).catch(() => {})';

const FLOODS = {
  requests: busy(FETCHES),
  "requests of workers": inWorkers(FETCHES),
  "console messages": busy('for (let i = 0; i < 5000; i++) console.log("x".repeat(100), { i })'),
  rejections: busy("for (let i = 0; i < 5000; i++) Promise.reject(new Error(String(i)))"),
  workers: `<title>busy</title><script>const url = URL.createObjectURL(new Blob([""]));
    setInterval(() => { for (let i = 0; i < 20; i++) new Worker(url) }, 0)</script>`,
};

/** Scripts that allocate about 40 MB every 20 ms and write to all of it. */
const MEMORY = {
  buffers: "setInterval(() => kept.push(new Uint8Array(40_000_000).fill(1)), 20)",
  images: `setInterval(() => {
    const canvas = new OffscreenCanvas(3_000, 3_000);
    canvas.getContext("2d").fillRect(0, 0, 3_000, 3_000);
    kept.push(canvas, canvas.getContext("2d").getImageData(0, 0, 3_000, 3_000));
  }, 20)`,
};

describe("a hostile page", function () {
  this.timeout(FLOOD_MS_MAX + 60_000);

  for (const [what, html] of Object.entries(FLOODS)) {
    it(`that floods the browser with ${what} is ended, and nobody else held up`, async () => {
      // The pool with its real bounds, which exist for pages that exhaust their browser.
      await using pool = openPool({ clock: standing, limits: POOL_LIMITS });
      await pool.start();
      const turnMs = longestTurn();
      const refused = await refusalOf(
        print(pool, { html, waitForTimeout: 100_000 }, { deadlineMs: FLOOD_MS_MAX }),
      );
      const longestMs = turnMs();
      expect(refused).to.include({ code: "browser_crashed" });
      expect(refused.message).to.include("more events");
      expect(refused.details.browserMs).to.be.above(0);
      expect(longestMs).to.be.below(TURN_MS_MAX);
      // If the browser is slow to close the page, it is killed. The other task then survives by its retry.
      const other = { html: "<title>other</title>" };
      const printed = await print(pool, other).catch((error) => {
        expect(error).to.be.instanceOf(BrowserDiedError);
        return print(pool, other);
      });
      expect(printed.title).to.equal("other");
    });
  }

  it("is no document of thousands of images", async () => {
    await using pool = openPool();
    const pixel = (index: number) => {
      const image = Buffer.from("R0lGODlhAQABAIAAAAAAAAAAACwAAAAAAQABAAACAkQBADs=", "base64");
      image.writeUIntBE(index, 13, 3); // A colour of its own.
      return `<img src="data:image/gif;base64,${image.toString("base64")}">`;
    };
    const html = `<title>album</title>${Array.from({ length: 5_000 }, (_, i) => pixel(i)).join("")}`;
    const pdf = await print(pool, { html, gotoOptions: { waitUntil: "load" } });
    expect(pdf.title).to.equal("album");
  });

  describe("that redefines what is asked of it", () => {
    const pool = openPool();
    before(() => pool.start());
    after(() => pool.close());

    const LIES = {
      "the fonts' getter": `<script>Object.defineProperty(document, "fonts", { get() { throw 1 } })</script>`,
      "the fonts' list": `<script>Object.defineProperty(Document.prototype, "fonts", { value: 5 });
        Array.prototype.filter = Array.prototype[Symbol.iterator] = Promise.allSettled = () => { throw 1 }</script>`,
      "fonts by a named element": `<form name="fonts"></form><img name="documentElement">`,
    };
    for (const [what, lie] of Object.entries(LIES)) {
      it(`${what} prints as it is`, async () => {
        expect((await print(pool, { html: `<title>t</title>${lie}` })).title).to.equal("t");
      });
    }

    it("the document's methods does not make a selector a wrong one", async () => {
      const html = `<title>t</title><b></b><script>
        document.createDocumentFragment = document.querySelector = () => { throw 1 }</script>`;
      const waitForSelector = { selector: "b" };
      expect((await print(pool, { html, waitForSelector })).title).to.equal("t");
    });

    it("the document's methods by named elements does not either", async () => {
      const html = `<title>t</title><b></b><img name="createDocumentFragment"><img name="querySelector">`;
      const waitForSelector = { selector: "b" };
      expect((await print(pool, { html, waitForSelector })).title).to.equal("t");
    });
  });

  for (const [what, take] of Object.entries(MEMORY)) {
    it(`that takes memory by ${what} is ended at its first try, and nobody else`, async () => {
      const limits = { rendererBytesMax: 600_000_000, rendererCheckMs: 100 };
      await using pool = openPool({ limits });
      await pool.start();
      const [browser] = pool.pids;
      const beside = print(pool, { html: "<title>beside</title>", waitForTimeout: 3_000 });
      const html = `<title>eats</title><script>const kept = []; ${take}</script>`;
      const refused = await refusalOf(print(pool, { html, waitForTimeout: 45_000 }));
      expect(refused.code).to.equal("browser_crashed");
      expect(refused.message).to.contain("too much memory");
      expect((await beside).title).to.equal("beside");
      expect(pool.pids).to.deep.equal([browser]);
    });
  }

  it("that takes too much memory only together with others is ended, and not their browser", async () => {
    const limits = { memoryBytesKill: 900_000_000, pingMs: 200 };
    await using pool = openPool({ limits });
    await using site = await WebSite.start();
    await pool.start();
    const [browser] = pool.pids;
    const drawn = Promise.withResolvers<ServerResponse>();
    site.page("/last.js", (_, response) => drawn.resolve(response));
    const url = site.page("/", `<title>beside</title><script src="/last.js"></script>`);
    const beside = print(pool, { url, gotoOptions: { waitUntil: "load" } });
    const response = await drawn.promise;
    const html = "<title>large</title><script>kept = new Uint8Array(300_000_000).fill(1)</script>";
    const leaving = new AbortController();
    const { signal } = leaving;
    const large = [1, 2, 3].map(() =>
      refusalOf(print(pool, { html, waitForTimeout: 45_000 }, { signal })),
    );
    const first = await Promise.race(large);
    leaving.abort();
    expect(first.code).to.equal("browser_crashed");
    expect(first.message).to.contain("too much memory");
    for (const { code } of await Promise.all(large)) {
      expect(code).to.be.oneOf(["browser_crashed", "cancelled"]);
    }
    response.end();
    expect((await beside).title).to.equal("beside");
    expect(pool.pids).to.deep.equal([browser]);
  });

  it("that closes itself is lost at once", async () => {
    await using pool = openPool();
    await pool.start();
    const startedAt = performance.now();
    for (const html of ["<script>close()</script>", busy("close()")]) {
      const refused = await refusalOf(
        print(pool, { html, gotoOptions: { waitUntil: "networkidle0" }, waitForTimeout: 50_000 }),
      );
      expect(refused.code).to.equal("browser_crashed");
      expect(refused.message).to.include("closed itself");
    }
    expect(performance.now() - startedAt).to.be.below(45_000);
    await until("every slot is free", () => pool.contextsInUse === 0);
  });
});
