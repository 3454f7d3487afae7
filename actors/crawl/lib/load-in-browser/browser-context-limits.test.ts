import type { ServerResponse } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { stopGroup } from "../../../../scripts/testing/process-children.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { pageLoad } from "../../workers/crawl-page/testing/page-load.ts";
import type { PageAnswer } from "../load/page-loader.ts";
import {
  CRAWL_CONTEXT_AGE_MS_MAX,
  CRAWL_CONTEXT_BYTES_MAX,
  CRAWL_CONTEXT_IDLE_MS,
  CRAWL_CONTEXT_PAGES_MAX,
  RENDER_BYTES_MAX,
} from "./browser-contexts.ts";
import { BrowserPage, PAGE_RESET_MS } from "./browser-page.ts";
import { BrowserPageLoader } from "./browser-page-loader.ts";

const CHUNK = Buffer.alloc(64 * 1024, "x");
/** Maximum bytes that response heads and other pages add to the transferred bytes. */
const MARGIN_BYTES = 2_000_000;
/** Bytes of the stream that may be sent for each other page that is loaded. */
const STEP_BYTES = 20_000_000;
/** Longest load of a small page. */
const SOON_MS = 4_000;
/** Maximum bytes that a socket buffers unread. */
const UNREAD_BYTES_MAX = 16_000_000;

describe("the browser context of a crawl", function () {
  this.timeout(180_000);
  const pool = openPool();
  const loaders: BrowserPageLoader[] = [];
  let clock: SkippingClock;
  let site: WebSite;

  before(() => pool.start());
  beforeEach(async () => {
    clock = new SkippingClock();
    site = await WebSite.start();
  });
  afterEach(async () => {
    await Promise.all(loaders.splice(0).map((loader) => loader.close()));
    await until("contexts are given back", () => pool.contextsInUse === 0);
    await site[Symbol.asyncDispose]();
  });
  after(() => pool.close());

  function open(parameters: object = {}) {
    const request = CrawlRequest.parse({ url: site.url, ...parameters });
    const loader = new BrowserPageLoader({ pool, clock, request });
    loaders.push(loader);
    return {
      load: (url: string) => loader.load(pageLoad(url, { startBy: clock.monotonic() + 60_000 })),
    };
  }

  describe("transfers bytes up to the limit of all pages of a job", () => {
    let sent = 0;
    /** Bytes of the stream that may be sent so far. The number grows with each other page. */
    let mayBeSent = 0;
    let goOn = () => {};

    /** A page that says "whole" after reading these bytes, and "cut" if they do not arrive. */
    function reader(bytes: number): string {
      sent = 0;
      site.page("/stream", (_: unknown, response: ServerResponse) => {
        goOn = () => {
          while (sent < Math.min(bytes, mayBeSent) && !response.destroyed) {
            const chunk = CHUNK.subarray(0, bytes - sent);
            sent += chunk.length;
            if (!response.write(chunk)) return;
          }
          if (sent >= bytes) response.end();
        };
        response.on("drain", goOn);
        goOn();
      });
      return site.page(
        "/reader",
        `<!doctype html><script>
          const say = (text) => document.body.append(Object.assign(document.createElement("b"), { id: "done", textContent: text }));
          fetch("/stream").then(({ body }) => body.pipeTo(new WritableStream())).then(() => say("whole"), () => say("cut"));
        </script><body>`,
      );
    }

    /** Other pages begin and end during the read. */
    async function readBesideOthers(bytes: number) {
      const loader = open({ waitForSelector: { selector: "#done", timeout: 100_000 } });
      const beside = site.page("/beside", "<!doctype html><p id=done>x");
      let isOver = false;
      mayBeSent = STEP_BYTES;
      const read = loader.load(reader(bytes)).finally(() => {
        isOver = true;
      });
      await until("it reads", () => sent > 0);
      let contexts = 0;
      while (!isOver) {
        expect(await loader.load(beside)).to.include({ kind: "page" });
        contexts = Math.max(contexts, pool.contextsInUse);
        mayBeSent += STEP_BYTES;
        goOn();
      }
      const answer = await read;
      expect(answer).to.include({ kind: "page" });
      return { html: answer.kind === "page" ? answer.html : "", contexts };
    }

    it("RENDER_BYTES_MAX until one page ends; past half of it new pages get another context", async () => {
      const { html, contexts } = await readBesideOthers(RENDER_BYTES_MAX - MARGIN_BYTES);
      expect(html).to.contain("whole");
      expect(contexts).to.equal(2);
    });

    it("RENDER_BYTES_MAX at most, however many other pages start meanwhile", async () => {
      const { html } = await readBesideOthers(2 * RENDER_BYTES_MAX);
      expect(html).to.contain("cut");
      expect(sent).to.be.within(
        RENDER_BYTES_MAX - MARGIN_BYTES,
        RENDER_BYTES_MAX + UNREAD_BYTES_MAX,
      );
    });

    it("and does not count the bytes of ended pages", async () => {
      const loader = open({ waitForSelector: { selector: "#done", timeout: 100_000 } });
      mayBeSent = Number.POSITIVE_INFINITY;
      const url = reader(CRAWL_CONTEXT_BYTES_MAX + MARGIN_BYTES);
      for (const _ of [1, 2, 3]) {
        sent = 0;
        expect(await loader.load(url))
          .to.have.property("html")
          .that.contains("whole");
      }
    });
  });

  /**
   * A page whose title identifies its browser context. The title is in local storage, which a new context does not
   * inherit.
   */
  const marked = () =>
    site.page("/marked", "<script>document.title = localStorage.at ??= Math.random()</script>");
  const titleOf = (answer: PageAnswer) =>
    answer.kind === "page" ? /<title>([^<]+)</.exec(answer.html)?.[1] : undefined;

  it("is returned CRAWL_CONTEXT_IDLE_MS after its last page, and not before", async () => {
    const { load } = open();
    const url = marked();
    const idle = () => until("it is idle", () => clock.isAwaited(CRAWL_CONTEXT_IDLE_MS));
    const first = titleOf(await load(url));

    await idle();

    clock.skip(CRAWL_CONTEXT_IDLE_MS - SOON_MS);
    expect(titleOf(await load(url)))
      .to.equal(first)
      .and.not.equal(undefined);

    await idle();

    expect(pool.contextsInUse).to.equal(1);
    clock.skip(CRAWL_CONTEXT_IDLE_MS);
    await until("it is given back", () => pool.contextsInUse === 0);

    expect(titleOf(await load(url))).not.to.equal(first);
  });

  it("is replaced after CRAWL_CONTEXT_AGE_MS_MAX, and not before", async () => {
    const { load } = open();
    const url = marked();
    const openedAt = clock.monotonic();
    const first = titleOf(await load(url));
    const left = () => openedAt + CRAWL_CONTEXT_AGE_MS_MAX - clock.monotonic();
    while (left() > 2 * SOON_MS) {
      clock.skip(Math.min(CRAWL_CONTEXT_IDLE_MS, left()) - SOON_MS);
      expect(titleOf(await load(url))).to.equal(first);
    }
    // The context was opened after `openedAt`, so the test skips a margin of SOON_MS too.
    clock.skip(left() + SOON_MS);
    expect(titleOf(await load(url))).not.to.equal(first);
  });

  it("is replaced after CRAWL_CONTEXT_PAGES_MAX pages, and not before", async () => {
    const { load } = open();
    const url = marked();
    const redirect = site.page("/r", (_, response) =>
      response.writeHead(302, { Location: "/marked" }).end(),
    );
    const first = titleOf(await load(url));
    const queue = Array.from({ length: CRAWL_CONTEXT_PAGES_MAX - 2 }).values();
    const loadOn = async () => {
      for (const _ of queue) await load(redirect);
    };
    await Promise.all([loadOn(), loadOn(), loadOn()]);
    expect(titleOf(await load(url))).to.equal(first);
    expect(titleOf(await load(url))).not.to.equal(first);
  });

  it("closes a page that does not stop within PAGE_RESET_MS, and not before", async () => {
    clock = new SkippingClock({ stands: true });
    const context = await pool.newContext(new AbortController().signal);
    // During the replacement of a browser the pool has two, and either may have the context. So the test stops both.
    const browsers = pool.pids;
    try {
      const page = await BrowserPage.open(context, { parameters: { url: site.url }, clock });
      await Promise.all(browsers.map(stopGroup));
      let isUsable: boolean | undefined;
      const reset = page.reset().then((usable) => {
        isUsable = usable;
      });
      await turn();
      expect(isUsable).to.equal(undefined);
      clock.skip(PAGE_RESET_MS);
      await reset;
      expect(isUsable).to.equal(false);
    } finally {
      for (const pid of browsers) process.kill(-pid, "SIGCONT");
      context.release();
    }
  });
});
