import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { CRAWL_BODY_BYTES_MAX } from "../../../../schemas/crawl/limits.ts";
import { childrenOf, isRunning } from "../../../../scripts/testing/process-children.ts";
import { until } from "../../../../scripts/testing/until.ts";
import type { WebSite } from "../../../../scripts/testing/web-site.ts";
import type { PageAnswer } from "../load/page-loader.ts";
import type { BrowserPageLoader } from "./browser-page-loader.ts";
import { answers, LoaderScene, pageOf, scriptPage } from "./testing/loader-scene.ts";

const browsers = () => childrenOf(process.pid).filter(isRunning);

describe("BrowserPageLoader and hostile pages", function () {
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

  describe("load() fails with a reason", () => {
    it("for a page that hangs, closes itself, crashes or navigates away; and loads the next", async () => {
      const loader = open({ gotoOptions: { timeout: 4_000 } }, { takeHtmlMs: 4_000 });
      const patient = open();
      const good = site.page("/good", "<p>good");
      // On a busy machine loading the next page may take longer than the timeouts of `loader`, so the test retries.
      const nextLoads = (what: string, by: BrowserPageLoader) =>
        until(`a page after ${what}`, async () => (await load(by, good)).kind === "page", 60_000);
      const cases = {
        endless: [scriptPage("for (;;);"), "took longer than 4000 ms"],
        late: [
          scriptPage(`addEventListener("load", () => { for (;;); })`),
          "took longer than 4000 ms",
        ],
        silent: [() => {}, "took longer than 4000 ms"],
        blank: [scriptPage(`location.href = "about:blank"`), "navigated away", patient],
      } as const;
      for (const [name, [page, reason, by = loader]] of Object.entries(cases)) {
        const answer = await load(by, site.page(`/${name}`, page));
        expect(answer, name).to.have.property("kind", "failed");
        expect(answer, name).to.have.property("reason").that.contains(reason);
        expect(answer.browserMs, name).to.be.greaterThan(0);
        await nextLoads(name, by);
      }
      const closed = await load(patient, site.page("/close", scriptPage("close()")));
      expect(pageOf(closed).html).to.contain("kept");
      const dialogs = scriptPage("alert(1); confirm(2); onbeforeunload = () => 1");
      expect(pageOf(await load(patient, site.page("/dialogs", dialogs))).html).to.contain("kept");
      await nextLoads("dialogs", patient);
    });

    it("only for the page whose renderer crashes", async () => {
      const loader = open({ gotoOptions: { timeout: 60_000 } });
      const slow = site.page("/slow", (_, response) => {
        response.write("<p>slow");
        crashed.then(() => response.end());
      });
      const { promise: crashed, resolve: onCrash } = Promise.withResolvers<void>();
      const beside = load(loader, slow);
      await until("the other page loads", () => site.paths.includes("/slow"));
      const hog = scriptPage(
        `const all = []; for (;;) all.push(new Array(1e6).fill(Math.random()))`,
      );
      const answer = await load(loader, other.page("/hog", hog));
      expect(answer).to.deep.include({ kind: "failed", retry: true });
      onCrash();
      expect(pageOf(await beside).html).to.contain("slow");
    });

    it("when its browser dies, and loads the next page in another", async () => {
      const loader = open();
      const asked = once(site.server, "request");
      const pending = load(
        loader,
        site.page("/never", () => {}),
      );
      await asked;
      for (const pid of pool.pids) process.kill(pid, "SIGKILL");
      expect(await pending).to.include({ kind: "failed", retry: true, browserLost: true });
      expect(pageOf(await load(loader, site.page("/good", "<p>good"))).html).to.contain("good");
    });

    it("when its own browser dies, without effect on the pages of other browsers, and vice versa", async () => {
      const loader = open();
      const held: ServerResponse[] = [];
      const slow = site.page("/slow", (_, response) => {
        held.push(response);
        response.write("<p>slow");
      });
      const both = async () => {
        held.length = 0;
        const loads = [load(loader, slow, { isAlone: true }), load(loader, slow)] as const;
        await until("both are asked for", () => held.length === 2, 60_000);
        const apart = browsers().filter((pid) => !pool.pids.includes(pid));
        expect(apart).to.have.length(1);
        return { loads, apart };
      };
      const answered = async (ended: readonly number[], loads: readonly Promise<PageAnswer>[]) => {
        for (const pid of ended) process.kill(pid, "SIGKILL");
        const [lost, other] = loads;
        expect(await lost).to.include({ kind: "failed", retry: true, browserLost: true });
        for (const response of held) response.end();
        expect(await other).to.have.property("kind", "page");
      };
      const { loads, apart } = await both();
      await answered(apart, loads);
      await until("it is gone", () => browsers().every((pid) => pool.pids.includes(pid)), 60_000);
      const again = await both();
      await answered(pool.pids, again.loads.toReversed());
    });
  });

  it("load() truncates an endless document, and one that grows endlessly when decoded", async () => {
    const loader = open({ gotoOptions: { timeout: 60_000 } }, { takeHtmlMs: 60_000 });
    const endless = site.page("/endless", (_, response) => {
      const more = () => {
        while (response.write(`<p>${"x".repeat(60_000)}`));
      };
      response.on("drain", more);
      more();
    });
    const answer = pageOf(await load(loader, endless));
    expect(answer.truncated).to.equal(true);
    // In lines: laying out a single one of 100 MB crashes a renderer before the cut reaches it.
    const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024, `<p>${"a".repeat(60_000)}`));
    const packed = answers(200, { "Content-Encoding": "gzip", "Content-Type": "text/html" }, bomb);
    const unpacked = pageOf(await load(loader, site.page("/bomb", packed)));
    expect(unpacked.truncated).to.equal(true);
    expect(unpacked.html.length).to.be.at.most(CRAWL_BODY_BYTES_MAX);
    expect(pageOf(await load(loader, site.page("/good", "<p>good"))).html).to.contain("good");
  });
});
