import { expect } from "chai";
import { pino } from "pino";
import type { Envelope } from "../../../../schemas/contract.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { encryptCrawlRequest } from "../../../../schemas/crawl/stored-request.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { taskContext } from "../../../../scripts/testing/task-context.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { BrowserNotStartedError } from "../../../rendering/lib/browser/browser-died-error.ts";
import { MarkdownPool } from "../../../rendering/lib/extract/markdown-pool.ts";
import { NoRequestKey } from "../../../rendering/lib/request-keys/request-keys.ts";
import { type Clock, systemClock as clock } from "../../../runtime/lib/clock.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import type { PageAnswer, PageLoad } from "../../lib/load/page-loader.ts";
import { HeldJobs } from "../../lib/records/held-jobs.ts";
import { RecordWriter } from "../../lib/records/record-writer.ts";
import { BROWSER_TIME_REPORT_MS } from "./browser-time.ts";
import { crawlPageWorker } from "./crawl-page.ts";
import type { TurnWalkParts } from "./walk-turn.ts";
import { TURN_STARTS_MS_MAX } from "./walk-turn.ts";

const URL_OF_START = "http://a.example/";
const PAIR = [`${URL_OF_START}1`, `${URL_OF_START}2`];
const id = (letter: string) => letter.repeat(32);
const guard = createEgressGuard({ policy: createAddressPolicy({ allow: [] }) });
const loadedPage: PageAnswer = {
  ...{ kind: "page", status: 200, html: "x", truncated: false, contentType: "text/html" },
  ...{ lastModifiedAt: undefined, awayMs: undefined, nofollow: false },
  browserMs: 7,
};

const stored: BlobStore["putAll"] = async (blobs) =>
  blobs.map(({ name, content: { length: bytes } }) => ({ name, bytes, storedBytes: bytes }));

interface Scene {
  load?: (page: PageLoad) => Promise<PageAnswer>;
  begin?: (asked: JudgeRequest) => object | undefined | Promise<object>;
  /** Reply of the site to `requestStarted`; by default it comes immediately. */
  started?: (asked: JudgeRequest) => Promise<object>;
  attempt?: number;
  lease?: Partial<Pick<TaskContext, "lapsed" | "isSure">>;
  urls?: string[];
  places?: FairSemaphore;
  outOfTime?: TurnWalkParts["outOfTime"];
  unreported?: TurnWalkParts["unreported"];
  atOnce?: number;
  clock?: Clock;
  putAll?: BlobStore["putAll"];
  /** `isCached`: the account has a cached copy of every page. `judge` returns the site's verdicts for them. */
  isCached?: boolean;
  judge?: (asked: { urls: string[] }) => object;
  onTold?: (message: string, input: unknown) => void | Promise<void>;
  /** If present, the stored request is encrypted, and this function opens its key. */
  openKey?: () => Promise<string>;
}

interface JudgeRequest {
  nth?: number;
  urls: string[];
  again?: boolean;
}

describe("walkTurn", () => {
  const markdown = new MarkdownPool();
  after(() => markdown.close());

  /** Runs one turn against these replies. Returns the loads, and every message in order. */
  async function walked(scene: Scene, controller = new AbortController()) {
    const {
      urls = [URL_OF_START],
      attempt = 1,
      places = new FairSemaphore({ places: 4 }),
      outOfTime,
    } = scene;
    const { atOnce = 1, clock: workersClock = clock, putAll = stored } = scene;
    const go = { state: "go", waitMs: 0, atOnce, verdicts: urls.map(() => ({ allowed: true })) };
    const loads: string[] = [];
    const calls: string[] = [];
    const asked: JudgeRequest[] = [];
    const mail: Envelope[] = [];
    const request = CrawlRequest.parse({ url: URL_OF_START, render: false, maxAge: 100 });
    const blobs = {
      async *get() {
        const json = Buffer.from(JSON.stringify(request));
        yield scene.openKey ? await encryptCrawlRequest(json, () => "sealed") : json;
      },
      put: async (name: string) => ({ name, bytes: 1, storedBytes: 1 }),
      putAll,
      size: async () => undefined,
      removeAll: async () => {},
    };
    const { load = async () => loadedPage } = scene;
    const none = () => Promise.reject(new Error("none here"));
    const jobs = new HeldJobs({
      ...{ blobs, requestKeys: { open: scene.openKey ?? none }, clock },
      open: async () => ({
        load(page) {
          loads.push(page.url);
          return load(page);
        },
        async close() {},
      }),
    });
    const turns = {
      ...{ jobs, clock: workersClock, blobs, markdown, places, sitemaps: { guard, clock } },
      cache: {
        get: async () => (scene.isCached ? cachedPage() : undefined),
        put: async () => true,
      },
      logger: pino({ level: "silent" }),
      largePlaces: new FairSemaphore({ places: 1 }),
      copyPlaces: new FairSemaphore({ places: 1 }),
      markdownPlaces: new Semaphore(1),
      records: new RecordWriter(blobs),
      ...(outOfTime && { outOfTime }),
      unreported: scene.unreported ?? new Map(),
    };
    const { handlers, failures } = crawlPageWorker({
      ...{ lanes: {}, fetch: turns, browser: turns, blobs },
      robots: { guard, clock, places },
      json: {
        ...{ blobs, extractor: { extract: none }, markdown, markdownPlaces: turns.markdownPlaces },
        ...{ largePlaces: turns.largePlaces, hold: none, clock },
      },
    });
    const turn: Turn = {
      ...{ account: id("1"), job: id("2"), host: "a.example", turn: id("3") },
      requests: urls.map((url, index) => ({ type: "page", index, url, attempt: 1 })),
    };
    const context = {
      ...taskContext({ key: turn.job, attempt, signal: controller.signal, ...scene.lease }),
      async send(envelopes: readonly Envelope[]) {
        mail.push(...envelopes);
      },
      async tell(envelope: Envelope) {
        mail.push(envelope);
        await scene.onTold?.(envelope.message, envelope.input);
        return true;
      },
      async call(_: unknown, _key: string, message: string, input: JudgeRequest) {
        calls.push(input.again ? `${message} again` : message);
        asked.push(input);
        if (message === "judge") return scene.judge?.(input);
        if (message === "requestStarted") return (await scene.started?.(input)) ?? {};
        return message === "begin" ? ((await scene.begin?.(input)) ?? go) : {};
      },
    };
    let error: unknown;
    const outcome = await handlers.renderTurn(turn, context as never).catch((thrown) => {
      error = thrown;
      return { send: [] };
    });
    const { send = [] } = outcome;
    mail.push(...(typeof send === "function" ? send() : send));
    await jobs.close();
    const inputs = (message: string) =>
      // biome-ignore lint/suspicious/noExplicitAny: what any message has.
      mail.filter((one) => one.message === message).map(({ input }) => input as any);
    const messages = mail.map(({ message }) => message);
    return { loads, calls, asked, inputs, messages, failures, turn, error };
  }

  it("reports a turn's page and the browser time, and sends nothing more for a reported turn", async () => {
    const { messages, calls, inputs } = await walked({
      async load({ onStarted }) {
        onStarted();
        onStarted();
        return loadedPage;
      },
    });
    expect(messages).to.deep.equal(["turnReported", "turnFinished", "used"]);
    // The browser has repeated the request by itself, so the site gets a second report.
    expect(calls).to.deep.equal(["begin", "requestStarted", "requestStarted again"]);
    expect(inputs("used")).to.deep.equal([{ ms: 7, taskId: id("3") }]);
  });

  it("makes no request at a second attempt, and returns the pages that the first did not report", async () => {
    const { messages, loads, calls, inputs } = await walked({ attempt: 2 });
    expect([loads, calls]).to.deep.equal([[], []]);
    expect(messages).to.deep.equal(["turnFinished", "turnEnded"]);
    expect(inputs("turnEnded")[0].failed).to.include("its worker stopped in it");
  });

  it("makes no request if the site replies gone", async () => {
    const { messages, loads } = await walked({ begin: () => ({ state: "gone" }) });
    expect(loads).to.deep.equal([]);
    expect(messages).to.deep.equal(["turnFinished", "turnEnded"]);
  });

  it("calls again after a reply wait, and when its request did not leave in time", async () => {
    const waits = [{ state: "wait", askAgainInMs: 5 }];
    const waited = await walked({ begin: () => waits.shift() ?? goNow(0) });
    expect(waited.calls).to.deep.equal(["begin", "begin"]);
    let tries = 0;
    // While the request connects, the site replies `wait`, so the request must not leave.
    const answers = [goNow(0), { state: "wait", askAgainInMs: 5 }];
    const late = await walked({
      begin: () => answers.shift() ?? goNow(0),
      load: ({ signal, onStarted }) => {
        tries += 1;
        if (tries > 1) {
          onStarted();
          return Promise.resolve(loadedPage);
        }
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      },
    });
    expect(late.calls).to.deep.equal(["begin", "begin", "begin", "requestStarted"]);
    expect(late.inputs("turnReported")[0].outcomes).to.have.length(1);
  });

  it("returns unmade requests when it is stopped or may have lost its task, and reports the others", async () => {
    for (const how of ["stopped", "lapsed"] as const) {
      const [controller, lapsed] = [new AbortController(), new AbortController()];
      const urls = [1, 2, 3].map((index) => URL_OF_START + index);
      const { messages, loads, inputs } = await walked(
        {
          ...{ urls, lease: { lapsed: lapsed.signal } },
          async load({ url, signal }) {
            if (url === urls[0]) return loadedPage;
            (how === "stopped" ? controller : lapsed).abort(new Error("stopping"));
            throw signal.reason;
          },
        },
        controller,
      );
      expect(loads).to.deep.equal(urls.slice(0, 2));
      expect(inputs("turnReported").flatMap(({ outcomes }) => outcomes)).to.have.length(1);
      expect(messages.at(-1)).to.equal("turnEnded");
      expect(inputs("turnEnded")[0]).not.to.have.property("failed");
    }
  });

  it("starts no request as soon as another worker may get its task", async () => {
    let isSure = true;
    const { loads } = await walked({
      ...{ urls: PAIR, lease: { isSure: () => isSure } },
      async load() {
        isSure = false;
        return loadedPage;
      },
    });
    expect(loads).to.have.length(1);
  });

  it("fails no page for an unreachable actor, a missing key, a browser that does not start, or a full store", async () => {
    const cause = new ActorError("unavailable", "Cannot reach it");
    const full = new ActorError("storage_full", "Cannot store it");
    const scenes: [Scene, string | undefined][] = [
      [{ begin: () => Promise.reject(new Error("not at present", { cause })) }, undefined],
      [
        { openKey: () => Promise.reject(new NoRequestKey("no key")) },
        "no host of actors could open the stored request, see the log of the role actors",
      ],
      [
        { load: () => Promise.reject(new BrowserNotStartedError("no browser")) },
        "no browser could be started",
      ],
      [{ putAll: () => Promise.reject(full) }, "the store has no room for what was fetched"],
    ];
    for (const [scene, fault] of scenes) {
      const places = new FairSemaphore({ places: 1 });
      const { messages, inputs } = await walked({ ...scene, places });
      expect(messages.slice(-1)).to.deep.equal(["turnEnded"]);
      expect(inputs("turnEnded")).to.deep.equal([
        { host: "a.example", turn: id("3"), ...(fault && { fault }) },
      ]);
      expect(inputs("turnReported")).to.deep.equal([]);
      expect(places.free).to.equal(1);
    }
  });

  it("reports a page that failed by an internal fault, and releases all places", async () => {
    const places = new FairSemaphore({ places: 1 });
    const { inputs } = await walked({ places, load: () => Promise.reject(new TypeError("bug")) });
    expect(inputs("turnReported")[0].outcomes[0]).to.include({ kind: "failed", retry: true });
    expect(places.free).to.equal(1);
  });

  it("starts a request that gets its place by TURN_STARTS_MS_MAX, and none later", async () => {
    for (const [lateMs, started] of [
      [0, 2],
      [1, 1],
    ] as const) {
      // Time stands still except for the first page, which holds the only place.
      let now = 1_000;
      const standing: Clock = { ...clock, monotonic: () => now };
      const { loads, messages, inputs } = await walked({
        ...{ urls: PAIR, atOnce: 2, places: new FairSemaphore({ places: 1 }), clock: standing },
        async load() {
          now = 1_000 + TURN_STARTS_MS_MAX + lateMs;
          return loadedPage;
        },
      });
      expect(loads).to.have.length(started);
      expect(inputs("turnReported").flatMap(({ outcomes }) => outcomes)).to.have.length(started);
      // Unreported pages go back to the job.
      expect(messages.at(-1)).to.equal(started < PAIR.length ? "turnEnded" : "used");
    }
  });

  it("has at most as many pages without a report as may be in flight at once", async () => {
    const atOnce = 4;
    const urls = Array.from({ length: 3 * atOnce }, (_, n) => `${URL_OF_START}${n}`);
    let started = 0;
    let known = 0;
    let unknownMost = 0;
    const { inputs } = await walked({
      ...{ urls, atOnce, places: new FairSemaphore({ places: urls.length }) },
      async load() {
        started += 1;
        return loadedPage;
      },
      async onTold(message, input) {
        if (message !== "turnReported") return;
        // Delays the report until no further request starts.
        for (let before = -1; before !== started; ) {
          before = started;
          for (let turns = 0; turns < 50; turns += 1) await new Promise(setImmediate);
        }
        unknownMost = Math.max(unknownMost, started - known);
        known += (input as { outcomes: unknown[] }).outcomes.length;
      },
    });
    expect(unknownMost).to.equal(atOnce);
    const outcomes = inputs("turnReported").flatMap((report) => report.outcomes);
    expect(outcomes).to.have.length(urls.length);
  });

  it("makes no more requests after a report has failed", async () => {
    const urls = Array.from({ length: 3 }, (_, n) => `${URL_OF_START}${n}`);
    const { loads, error } = await walked({
      urls,
      async onTold(message) {
        if (message === "turnReported") throw new TypeError("bug");
      },
    });
    expect(loads).to.have.length(1);
    expect(error).to.be.instanceOf(TypeError);
  });

  it("makes no more requests to a host that requests a pause, even in a response without a page", async () => {
    const { loads, inputs } = await walked({
      urls: PAIR,
      load: async () => ({
        ...{ kind: "failed", reason: "no text", retry: true, status: 503, browserMs: 0 },
        awayMs: 7_000,
      }),
    });
    expect(loads).to.have.length(1);
    expect(inputs("turnFinished")[0]).to.include({ awayMs: 7_000 });
  });

  it("makes the requests to a host with a delay one by one, each after the site knows of the one before", async () => {
    let known = 0;
    let loading = 0;
    let loadingMost = 0;
    const firstIsThere = Promise.withResolvers<void>();
    const { loads, calls, asked, inputs, messages } = await walked({
      urls: FOUR,
      begin: ({ nth, urls }) => {
        // The first call contains all addresses. Each later call contains only the next one, because the first reply
        // has judged all of them.
        expect([nth, urls]).to.deep.equal([known, known === 0 ? FOUR : [FOUR[known]]]);
        return spaced(urls);
      },
      async started({ nth = 0 }) {
        await new Promise(setImmediate);
        known = nth + 1;
        return {};
      },
      async load({ url, onStarted }) {
        loading += 1;
        loadingMost = Math.max(loadingMost, loading);
        onStarted();
        // The load of the first page ends only after the last one has started, so a slow page delays no other.
        if (url === FOUR[0]) await firstIsThere.promise;
        if (url === FOUR[3]) firstIsThere.resolve();
        loading -= 1;
        return loadedPage;
      },
    });
    expect(loads).to.deep.equal(FOUR);
    expect(loadingMost).to.equal(2);
    expect(calls).to.deep.equal(FOUR.flatMap(() => ["begin", "requestStarted"]));
    expect(asked.map(({ nth = 0 }) => nth)).to.deep.equal([0, 0, 1, 1, 2, 2, 3, 3]);
    expect(inputs("turnFinished").map(({ nth }) => nth)).to.have.members([0, 1, 2, 3]);
    expect(inputs("turnReported").flatMap(({ outcomes }) => outcomes)).to.have.length(4);
    expect(messages).to.not.include("turnEnded");
  });

  it("at a host with a delay requests only allowed pages, and another start time for one that missed its own", async () => {
    const tries: string[] = [];
    let asks = 0;
    const { loads, asked, inputs } = await walked({
      urls: FOUR,
      begin({ urls }) {
        asks += 1;
        // While the second request connects, the site replies `wait`, so that request must not leave.
        return asks === 3 ? { state: "wait", askAgainInMs: 5 } : spaced(urls, FOUR[1]);
      },
      load({ url, signal, onStarted }) {
        tries.push(url);
        if (tries.length !== 2) {
          onStarted();
          return Promise.resolve(loadedPage);
        }
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      },
    });
    expect(loads).to.deep.equal([FOUR[0], FOUR[2], FOUR[2], FOUR[3]]);
    const begun = asked.flatMap(({ nth, urls }) => (urls ? [[nth, urls]] : []));
    expect(begun).to.deep.equal([
      [0, FOUR],
      ...[1, 1, 1].map((nth) => [nth, [FOUR[2]]]),
      [2, [FOUR[3]]],
    ]);
    const outcomes = inputs("turnReported").flatMap((report) => report.outcomes);
    expect(outcomes.map(({ kind, index }) => [kind, index])).to.have.deep.members([
      ["disallowed", 1],
      ...[0, 2, 3].map((index) => ["fetched", index]),
    ]);
  });

  it("uses up the start time of a request that ended without leaving", async () => {
    const { calls, inputs } = await walked({
      urls: PAIR,
      begin: ({ urls }) => spaced(urls),
      load: async () => ({
        ...{ kind: "failed", reason: "refused", retry: true, status: undefined, browserMs: 0 },
      }),
    });
    expect(calls).to.deep.equal(PAIR.flatMap(() => ["begin", "requestStarted"]));
    expect(inputs("turnReported").flatMap(({ outcomes }) => outcomes)).to.have.length(2);
  });

  it("reports at once a pause of a host with a delay, while other pages load, and makes no more requests", async () => {
    const told = Promise.withResolvers<void>();
    const { loads, inputs, messages } = await walked({
      urls: FOUR,
      begin: async ({ nth = 0, urls }) => {
        // The reply has arrived by now.
        if (nth === 2) await new Promise(setImmediate);
        return spaced(urls);
      },
      onTold: (message) => {
        if (message === "turnFinished") told.resolve();
      },
      async load({ url, onStarted }) {
        onStarted();
        if (url === FOUR[1]) return { ...loadedPage, status: 429, awayMs: 7_000 };
        await told.promise;
        return loadedPage;
      },
    });
    expect(loads).to.deep.equal(FOUR.slice(0, 2));
    expect(inputs("turnFinished")).to.deep.equal([
      { turn: id("3"), nth: 1, awayMs: 7_000 },
      { turn: id("3"), nth: 0 },
      // Returns the unmade requests.
      { turn: id("3") },
    ]);
    // Unmade requests go back to the job.
    expect(messages.at(-1)).to.equal("turnEnded");
  });

  it("reports the loaded pages of a turn that ends between two requests, once all have arrived", async () => {
    for (const how of ["gone", "stopped", "failed"] as const) {
      const controller = new AbortController();
      const asked = Promise.withResolvers<void>();
      const { loads, inputs, messages, error } = await walked(
        {
          urls: FOUR,
          async begin({ nth, urls }) {
            if (nth !== 2) return spaced(urls);
            setImmediate(asked.resolve);
            if (how === "gone") return { state: "gone" };
            if (how === "stopped") controller.abort(new Error("stopping"));
            throw new ActorError("unavailable", "Cannot reach it");
          },
          async load({ url, onStarted }) {
            onStarted();
            if (url === FOUR[0]) await asked.promise;
            return loadedPage;
          },
        },
        controller,
      );
      expect(error, how).to.equal(undefined);
      expect(loads).to.deep.equal(FOUR.slice(0, 2));
      expect(inputs("turnReported").flatMap(({ outcomes }) => outcomes)).to.have.length(2);
      expect(messages.at(-1)).to.equal("turnEnded");
      const lost = how === "gone" ? { lost: true } : {};
      const finished = inputs("turnFinished").slice(0, 3);
      expect(finished, how).to.deep.equal([
        { turn: id("3"), nth: 1 },
        { turn: id("3"), nth: 0 },
        { turn: id("3"), ...lost },
      ]);
    }
  });

  it("uses cached copies that the site allows, without a turn; forbidden ones are disallowed", async () => {
    const refused = { allowed: false, reason: "line 1", unreachable: true };
    const { calls, loads, inputs } = await walked({
      ...{ urls: PAIR, isCached: true },
      judge: ({ urls }) => ({ verdicts: urls.map((url) => (url === PAIR[1] ? refused : ALLOWED)) }),
    });
    expect([calls, loads]).to.deep.equal([["judge"], []]);
    const outcomes = inputs("turnReported").flatMap((report) => report.outcomes);
    const [first, second] = outcomes.toSorted((a, b) => a.index - b.index);
    expect(first).to.include({ kind: "fetched", index: 0 });
    expect(second).to.deep.equal({
      ...{ kind: "disallowed", index: 1, reason: "line 1", unreachable: true },
    });
    expect(inputs("turnFinished")).to.have.length(1);
  });

  it("requests pages despite cached copies while the site's rules are unknown", async () => {
    const { calls, loads } = await walked({ isCached: true, judge: () => ({}) });
    expect(calls).to.deep.equal(["judge", "begin"]);
    expect(loads).to.have.length(1);
  });

  it("reports an unreachable host to the job", async () => {
    const verdicts = [{ allowed: false, reason: "no answer", unreachable: true }];
    const { inputs } = await walked({
      begin: () => ({ state: "go", waitMs: 0, atOnce: 1, verdicts }),
    });
    expect(inputs("turnReported")[0].outcomes).to.deep.equal([
      { kind: "disallowed", index: 0, reason: "no answer", unreachable: true },
    ]);
  });

  it("returns the turn after all its pages arrived if a browser does not start for one", async () => {
    const second = Promise.withResolvers<void>();
    const { messages, inputs } = await walked({
      ...{ urls: PAIR, atOnce: 2 },
      async load({ url }) {
        if (url === PAIR[0]) {
          setTimeout(second.resolve, 50);
          throw new BrowserNotStartedError("no browser");
        }
        await second.promise;
        return loadedPage;
      },
    });
    expect(messages.slice(0, 2)).to.deep.equal(["turnReported", "turnFinished"]);
    expect(messages.at(-1)).to.equal("turnEnded");
    expect(inputs("used")).to.deep.equal([{ ms: 7, taskId: id("3") }]);
  });

  it("accounts browser time for loaded pages, even if an internal fault keeps them from the job", async () => {
    const used = [{ ms: 7, taskId: id("3") }];
    const away = await walked({
      putAll: () => Promise.reject(new ActorError("unavailable", "away")),
    });
    expect(away.messages.at(-1)).to.equal("turnEnded");
    expect(away.inputs("used")).to.deep.equal(used);
    const bug = await walked({ putAll: () => Promise.reject(new TypeError("bug")) });
    expect(bug.error).to.be.instanceOf(TypeError);
    expect(bug.inputs("used")).to.deep.equal(used);
    expect(bug.messages).not.to.include("turnEnded");
  });

  it("reports the browser time of an unmodified page to the job", async () => {
    const { inputs } = await walked({
      load: async () => ({
        ...{ kind: "unmodified", status: 304, lastModifiedAt: undefined, browserMs: 700 },
      }),
    });
    expect(inputs("used")).to.deep.equal([{ ms: 700, taskId: id("3") }]);
    expect(inputs("turnReported")[0].outcomes[0]).to.include({ kind: "skipped", browserMs: 700 });
  });

  it("loads no page without browser time", async () => {
    const { loads, inputs, calls } = await walked({ outOfTime: async () => "none is left" });
    expect([loads, calls]).to.deep.equal([[], []]);
    expect(inputs("turnReported")[0].outcomes).to.deep.equal([
      { kind: "out_of_time", index: 0, reason: "none is left" },
    ]);
  });

  it("checks browser time before each page, and reports its usage every 10 s of it", async () => {
    const urls = [1, 2, 3, 4, 5].map((index) => URL_OF_START + index);
    const unreported: number[] = [];
    const { loads, inputs } = await walked({
      ...{ urls, atOnce: 1 },
      load: async () => ({ ...loadedPage, browserMs: BROWSER_TIME_REPORT_MS - 1 }),
      async outOfTime(_account, untoldMs) {
        unreported.push(untoldMs);
        return unreported.length > 4 ? "none is left" : undefined;
      },
    });
    expect(loads).to.deep.equal(urls.slice(0, 3));
    // The account is asked before the turn and before each page.
    const page = BROWSER_TIME_REPORT_MS - 1;
    expect(unreported).to.deep.equal([0, 0, page, 0, page]);
    const outcomes = inputs("turnReported").flatMap((report) => report.outcomes);
    expect(outcomes.map(({ kind }) => kind).sort()).to.deep.equal([
      ...["fetched", "fetched", "fetched", "out_of_time"],
    ]);
    expect(inputs("used")).to.deep.equal([
      { ms: 2 * page, taskId: `${id("3")}.1`, isPart: true },
      { ms: page, taskId: id("3") },
    ]);
  });

  it("reports browser time at BROWSER_TIME_REPORT_MS, and less at the turn's end", async () => {
    const used = async (browserMs: number) => {
      const { inputs } = await walked({ load: async () => ({ ...loadedPage, browserMs }) });
      return inputs("used");
    };
    const below = BROWSER_TIME_REPORT_MS - 1;
    expect(await used(below)).to.deep.equal([{ ms: below, taskId: id("3") }]);
    expect(await used(BROWSER_TIME_REPORT_MS)).to.deep.equal([
      { ms: BROWSER_TIME_REPORT_MS, taskId: `${id("3")}.1`, isPart: true },
      { ms: 0, taskId: id("3") },
    ]);
  });

  it("checks with the usage of all the worker's turns of the account, and reports it at its end", async () => {
    const [account, other] = [id("1"), id("9")];
    const unreported = new Map([
      [account, 100],
      [other, 5],
    ]);
    const asked: number[] = [];
    const { inputs } = await walked({
      ...{ urls: PAIR, unreported },
      async outOfTime(_account, untoldMs) {
        asked.push(untoldMs);
        return undefined;
      },
    });
    expect(asked).to.deep.equal([100, 100, 107]);
    expect(inputs("used")).to.deep.equal([{ ms: 114, taskId: id("3") }]);
    expect([...unreported]).to.deep.equal([[other, 5]]);
  });

  it("reports no browser time if it used none, whatever other turns used", async () => {
    const unreported = new Map([[id("1"), 100]]);
    const { inputs } = await walked({
      unreported,
      load: async () => ({ ...loadedPage, browserMs: 0 }),
    });
    expect(inputs("used")).to.deep.equal([]);
    expect(unreported.get(id("1"))).to.equal(100);
  });

  it("failures() notifies the job and the site of an abandoned task", async () => {
    const { failures, turn } = await walked({});
    const error = new ActorError("internal_error", "no");
    const context = { id: "task", key: turn.job };
    const told = (envelopes: Envelope[]) =>
      envelopes.map(({ kind, key, message }) => [kind, key, message].join(" "));
    expect(failures.fetchTurn(turn, error, context)[0]?.input).to.deep.include({ lost: true });
    for (const failed of [failures.fetchTurn, failures.renderTurn]) {
      expect(told(failed(turn, error, context))).to.deep.equal([
        "site a.example turnFinished",
        `crawl-job ${turn.job} turnEnded`,
      ]);
    }
    const robots = failures.robots(
      { host: "a.example", scheme: "http", turn: turn.turn },
      error,
      context,
    );
    expect(told(robots)).to.deep.equal(["site a.example robotsFetched"]);
    expect(told(failures.purge({ job: turn.job }, error, context))).to.deep.equal([
      `crawl-page ${turn.job} purge`,
    ]);
  });
});

const FOUR = [1, 2, 3, 4].map((number) => `${URL_OF_START}${number}`);
const ALLOWED = { allowed: true };
/** The begin replies of a host with a delay; one of the addresses may be disallowed. */
const spaced = (urls: readonly string[], forbidden?: string) => ({
  ...{ state: "go", waitMs: 0, atOnce: 1, spaced: true },
  verdicts: urls.map((url) => (url === forbidden ? { allowed: false, reason: "line 1" } : ALLOWED)),
});
const cachedPage = () => ({
  ...{ cachedAt: clock.now(), blobs: [], links: [] },
  metadata: { status: 200, url: URL_OF_START },
});
const goNow = (waitMs: number) => ({
  ...{ state: "go", waitMs, atOnce: 1, verdicts: [{ allowed: true }] },
});
