import { expect } from "chai";
import type { Turn } from "../../../schemas/crawl/crawl-page.ts";
import { CRAWL_TRIES_MAX, PAGE_LINKS_MAX } from "../../../schemas/crawl/limits.ts";
import { checkJob, fetched, HOST, JobWorld, START } from "../../../scripts/testing/job-world.ts";
import { BACKLOG_HELD_ROWS_MAX } from "./discovery/backlog.ts";
import { CRAWL_SITEMAPS_MAX, SITEMAPS_OPEN_MAX } from "./discovery/sitemaps.ts";
import { SITEMAP_NESTING_MAX } from "./read-sitemaps.ts";
import { CRAWL_MESSAGES_MAX } from "./state/job-messages.ts";
import { RECORDS_SPARE_MIN } from "./state/pages.ts";

const A = `${START}a`;
const B = `${START}b`;
const SITEMAP = `${START}sitemap.xml`;

interface Slice {
  url: string;
  urls?: { url: string; lastModifiedAt?: number; priority?: number }[];
  nested?: string[];
  end?: { failed?: string; retry: boolean } | undefined;
}

function read(world: JobWorld, { turn, requests }: Turn, slice: Slice): void {
  const { url, urls = [], nested = [] } = slice;
  const end = "end" in slice ? slice.end : { retry: false };
  const nesting = requests.find((request) => request.url === url && request.type === "sitemap");
  world.run("sitemapRead", {
    ...{ turn, url, urls, nested: nested.map((one) => ({ url: one })) },
    nesting: nesting?.type === "sitemap" ? nesting.nesting : 0,
    ...(end && { end }),
  });
}

const numbered = (count: number, prefix = START) =>
  Array.from({ length: count }, (_, number) => `${prefix}${number}`);

describe("discovery of a crawl", () => {
  it("the start URL comes first, then pages of sitemaps, then links", () => {
    const world = new JobWorld().start();
    world.learn({ sitemaps: [`${START}one.xml`, `${START}one.xml`, `${START}two.xml`] });
    const turn = world.grant();
    expect(turn.requests.map(({ url }) => url)).to.deep.equal([
      ...[START, `${START}one.xml`, `${START}two.xml`],
    ]);
    world.report(turn, fetched([`${START}link`, A])(0));
    expect(world.records()).to.have.length(1);
    read(world, turn, { url: `${START}two.xml`, urls: [{ url: B }], end: undefined });
    read(world, turn, { url: `${START}one.xml`, urls: [{ url: A }, { url: START }] });
    read(world, turn, { url: `${START}two.xml`, urls: [{ url: B }] });
    expect(world.records()).to.have.length(3);
    const last = world.grant(1);
    read(world, last, { url: SITEMAP, end: { failed: "HTTP 404", retry: false } });
    world.settleBacklog();
    expect(Object.keys(world.statuses())).to.deep.equal([START, B, A, `${START}link`]);
    expect(world.summary().messages).to.deep.equal([]);
    checkJob(world);
  });

  it("/sitemap.xml comes after all sitemaps that robots.txt names, and after their pages", () => {
    const world = new JobWorld().start();
    world.learn({ sitemaps: [`${START}index.xml`] });
    world.visit(fetched([`${START}link`]));
    const index = world.grant();
    expect(index.requests.map(({ url }) => url)).to.deep.equal([`${START}index.xml`]);
    read(world, index, { url: `${START}index.xml`, nested: [`${START}nested.xml`] });
    const nested = world.grant();
    expect(nested.requests.map(({ url }) => url)).to.deep.equal([`${START}nested.xml`]);
    read(world, nested, { url: `${START}nested.xml`, urls: [{ url: A }], end: undefined });
    expect(world.grant().requests.map(({ url }) => url)).to.deep.equal([A]);
    read(world, nested, { url: `${START}nested.xml`, end: { failed: "HTTP 503", retry: true } });
    const again = world.grant();
    expect(again.requests.map(({ url }) => url)).to.deep.equal([`${START}nested.xml`]);
    read(world, again, { url: `${START}nested.xml`, urls: [{ url: A }, { url: B }] });
    const usual = world.grant();
    expect(usual.requests.map(({ url }) => url)).to.deep.equal([SITEMAP, B]);
    read(world, usual, { url: SITEMAP, urls: [{ url: `${START}c` }] });
    world.settleBacklog();
    expect(Object.keys(world.statuses())).to.deep.equal(
      ["", "a", "b", "c", "link"].map((path) => START + path),
    );
    checkJob(world);
  });

  it("/sitemap.xml is read once even if robots.txt names it", () => {
    const world = new JobWorld().start();
    world.learn({ sitemaps: [SITEMAP] });
    world.visit(fetched());
    read(world, world.grant(), { url: SITEMAP });
    expect(world.summary().status).to.equal("completed");
  });

  it("pages of a sitemap wait until the start URL has determined the home of the crawl", () => {
    const world = new JobWorld().start();
    world.learn();
    const turn = world.grant();
    read(world, turn, { url: SITEMAP, urls: [{ url: "https://www.site.example/a" }] });
    expect(world.records()).to.have.length(1);
    const to = "https://www.site.example/";
    world.report(turn, { kind: "redirected", index: 0, to, status: 301, browserMs: 0 });
    world.learn({ host: "www.site.example" });
    world.visit(fetched(), "www.site.example");
    world.settleBacklog();
    expect(world.statuses()).to.include({ "https://www.site.example/a": "queued" });
  });

  it("source sitemaps follows no links, source links asks for no sitemap", () => {
    const sitemaps = new JobWorld().start({ source: "sitemaps" });
    sitemaps.learn();
    const turn = sitemaps.grant();
    sitemaps.report(turn, fetched([B])(0));
    read(sitemaps, turn, { url: SITEMAP, urls: [{ url: A }] });
    expect(Object.keys(sitemaps.statuses())).to.deep.equal([START, A]);
    const links = new JobWorld().start({ source: "links" });
    links.learn({ sitemaps: [SITEMAP] });
    expect(links.grant().requests).to.have.length(1);
  });

  it("depth bounds links from the start and from pages of sitemaps", () => {
    const world = new JobWorld().start({ depth: 1 });
    world.learn();
    const turn = world.grant();
    read(world, turn, { url: SITEMAP, nested: [`${START}1.xml`] });
    world.report(turn, fetched([A])(0));
    const second = world.grant();
    expect(second.requests[0]).to.deep.include({ url: `${START}1.xml`, nesting: 1 });
    read(world, second, { url: `${START}1.xml`, urls: [{ url: B }] });
    world.settleBacklog();
    world.visit(fetched([`${START}from-sitemap`]));
    world.visit(fetched([`${START}too-deep`]));
    expect(Object.entries(world.statuses()).map(([url, status]) => [url, status])).to.deep.equal([
      [START, "completed"],
      [B, "completed"],
      [A, "completed"],
      [`${START}from-sitemap`, "queued"],
      [`${START}too-deep`, "skipped"],
    ]);
    const alone = new JobWorld().start({ depth: 0, source: "links" });
    alone.learn();
    alone.visit(fetched([A]));
    expect(alone.summary()).to.deep.include({ status: "completed", total: 1 });
  });

  it("a sitemap that lists itself, or that lists one that lists it, ends", () => {
    const world = new JobWorld().start();
    world.learn({ sitemaps: [SITEMAP] });
    world.visit(fetched());
    const turn = world.grant();
    read(world, turn, { url: SITEMAP, nested: [SITEMAP, `${START}2.xml`] });
    const second = world.grant();
    read(world, second, { url: `${START}2.xml`, nested: [SITEMAP, `${START}2.xml`] });
    expect(world.summary().status).to.equal("completed");
  });

  it("an overlong robots.txt adds one message", () => {
    const world = new JobWorld().start();
    world.learn({ truncated: true });
    world.learn({ truncated: true });
    expect(world.summary().messages).to.deep.equal([
      `The robots.txt is too large: only its beginning applies (${START}robots.txt)`,
    ]);
  });

  it("sitemaps are read SITEMAP_NESTING_MAX levels deep, so an endless redirect ends", () => {
    const world = new JobWorld().start();
    world.learn();
    const turn = world.grant();
    world.report(turn, fetched()(0));
    read(world, turn, { url: SITEMAP, nested: [`${START}1.xml`] });
    for (let level = 1; level <= SITEMAP_NESTING_MAX; level++) {
      expect(world.summary()).to.deep.include({ status: "running", messages: [] });
      const next = world.grant();
      expect(next.requests[0]).to.deep.include({ url: `${START}${level}.xml`, nesting: level });
      read(world, next, { url: `${START}${level}.xml`, nested: [`${START}${level + 1}.xml`] });
    }
    expect(world.summary()).to.deep.include({
      status: "completed",
      messages: [`Sitemaps are read ${SITEMAP_NESTING_MAX} levels deep; others were left out`],
    });
  });

  it("a sitemap is tried three times where that makes sense, and a lost one from robots.txt adds a message", () => {
    const world = new JobWorld().start();
    world.learn({ sitemaps: [`${START}named.xml`] });
    world.visit(fetched());
    for (let tries = 1; tries <= CRAWL_TRIES_MAX; tries += 1) {
      const turn = world.grant();
      expect(turn.requests[0]).to.deep.include({ attempt: tries, url: `${START}named.xml` });
      const end = { failed: "Cannot read the sitemap: HTTP 503", retry: true };
      read(world, turn, { url: `${START}named.xml`, end });
    }
    read(world, world.grant(), { url: SITEMAP, end: { failed: "404", retry: false } });
    expect(world.summary()).to.deep.include({
      status: "completed",
      messages: [`Cannot read the sitemap: HTTP 503 (${START}named.xml)`],
    });
  });

  it("a lost turn's sitemap is requested again, and slices of an ended turn are ignored", () => {
    const world = new JobWorld().start();
    world.learn();
    world.visit(fetched());
    const turn = world.grant();
    world.run("turnEnded", { host: HOST, turn: turn.turn });
    read(world, turn, { url: SITEMAP, urls: [{ url: A }] });
    expect(world.records()).to.have.length(1);
    const again = world.grant();
    read(world, again, { url: SITEMAP, urls: [{ url: A }], end: undefined });
    read(world, again, { url: SITEMAP, urls: [{ url: A }], end: undefined });
    read(world, again, { url: SITEMAP });
    read(world, again, { url: SITEMAP, urls: [{ url: B }] });
    expect(Object.keys(world.statuses())).to.deep.equal([START, A]);
    checkJob(world);
  });

  it("robots.txt is learned once, and only for homes", () => {
    const world = new JobWorld().start();
    world.learn({ host: "elsewhere.example", sitemaps: [A] });
    world.learn({ scheme: "http", sitemaps: [A] });
    world.learn();
    const before = world.state;
    world.learn({ sitemaps: [A], refusal: "too late" });
    expect(world.state).to.equal(before);
    expect(world.grant().requests.map(({ url }) => url)).to.deep.equal([START, SITEMAP]);
  });

  it("a job waits for its robots.txt before it is completed", () => {
    const world = new JobWorld().start();
    world.visit(fetched());
    expect(world.summary().status).to.equal("running");
    world.learn();
    read(world, world.grant(), { url: SITEMAP });
    expect(world.summary().status).to.equal("completed");
  });

  it("addresses of higher priority come first", () => {
    const world = new JobWorld().start({ limit: 3 });
    world.learn();
    world.visit(fetched());
    const urls = [{ url: A, priority: 0.1 }, { url: B }, { url: `${START}c`, priority: 1 }];
    read(world, world.grant(), { url: SITEMAP, urls });
    expect(Object.keys(world.statuses())).to.deep.equal([START, `${START}c`, B]);
  });

  it("modifiedSince skips pages that a sitemap lists as older, to the second", () => {
    const at = Date.UTC(2026, 0, 2);
    const world = new JobWorld().start({ modifiedSince: at / 1_000 });
    world.learn();
    world.visit(fetched());
    const urls = [
      { url: A, lastModifiedAt: at - 1 },
      { url: B, lastModifiedAt: at },
      { url: `${START}c` },
    ];
    read(world, world.grant(), { url: SITEMAP, urls });
    expect(world.statuses()).to.include({ [A]: "skipped", [B]: "queued", [`${START}c`]: "queued" });
    expect(world.records()[1]?.reason).to.equal(
      "its sitemap says that it was last modified on 2026-01-01T23:59:59.999Z, before modifiedSince",
    );
    expect(world.summary()).to.deep.include({ total: 3, skipped: 1 });
  });

  it("modifiedSince skips an older page and follows its links, the start's too", () => {
    const world = new JobWorld().start({ modifiedSince: 1_767_225_600, source: "links" });
    world.learn();
    const older =
      (...links: string[]) =>
      (index: number) => ({
        kind: "skipped" as const,
        ...{ index, reason: "Last modified before that", links, browserMs: 7 },
        metadata: { status: 200, url: START },
      });
    world.visit(older(A));
    world.visit(older(B, A));
    expect(world.statuses()).to.deep.equal({ [START]: "skipped", [A]: "skipped", [B]: "queued" });
    expect(world.summary()).to.include({ status: "running", skipped: 2, browserMs: 14 });
    world.visit(fetched());
    expect(world.summary()).to.include({ status: "completed", total: 1, skipped: 2 });
  });

  it("scope: an address outside the crawl is skipped once, with a reason", () => {
    const world = new JobWorld().start({ source: "links", options: { excludePatterns: ["**/b"] } });
    world.learn();
    const strange = "https://strange.example/";
    world.visit(fetched([strange, A, B, strange]));
    world.visit(fetched([strange, B]));
    expect(world.records().map(({ status, reason }) => [status, reason])).to.deep.equal([
      ["completed", undefined],
      ["skipped", "the host is strange.example, not site.example"],
      ["completed", undefined],
      ["skipped", 'excludePatterns has "**/b"'],
    ]);
    expect(world.summary()).to.deep.include({ status: "completed", total: 2, skipped: 2 });
  });

  it("limit: the crawl has that many pages and not one more", () => {
    for (const limit of [1, 3, 5]) {
      const world = new JobWorld().start({ source: "links", limit });
      world.learn();
      world.visit(fetched(numbered(10)));
      world.settleBacklog();
      while (world.summary().status === "running") world.visit(fetched(numbered(10, A)));
      expect(world.summary()).to.deep.include({ total: limit, finished: limit });
      checkJob(world);
    }
  });

  it("limit: sitemaps are not requested when the limit is reached", () => {
    const world = new JobWorld().start({ limit: 2 });
    world.learn({ sitemaps: [`${START}1.xml`, `${START}2.xml`] });
    world.visit(fetched());
    read(world, world.grant(1), { url: `${START}1.xml`, urls: [{ url: A }, { url: B }] });
    const turn = world.grant();
    expect(turn.requests.map(({ url }) => url)).to.deep.equal([A]);
    world.take("site");
    world.report(turn, { kind: "disallowed", index: 1, reason: "robots.txt" });
    world.settleBacklog();
    expect(world.statuses()[B]).to.equal("queued");
    world.visit((index) => ({ kind: "disallowed", index, reason: "robots.txt" }));
    const [want] = world.take("site").slice(-1);
    expect(want?.input).to.deep.include({ wants: 1 });
    const two = world.grant();
    expect(two.requests.map(({ url }) => url)).to.deep.equal([`${START}2.xml`]);
    read(world, two, { url: `${START}2.xml` });
    expect(world.grant().requests.map(({ url }) => url)).to.deep.equal([SITEMAP]);
  });

  it("skipped addresses past the limit of records are only counted", () => {
    const world = new JobWorld().start({ source: "links", limit: 2 });
    world.learn();
    world.visit(fetched([...numbered(RECORDS_SPARE_MIN + 5, "https://strange.example/"), A]));
    world.settleBacklog();
    expect(world.summary().skipped).to.equal(RECORDS_SPARE_MIN + 5);
    expect(world.records({ status: "skipped" })).to.have.length(RECORDS_SPARE_MIN);
    checkJob(world);
  });

  it("a site that disallows endless links does not keep the crawl running", () => {
    const world = new JobWorld().start({ source: "links", limit: 2 });
    world.learn();
    world.visit(fetched(numbered(5_000)));
    world.settleBacklog();
    let rounds = 0;
    for (; world.summary().status === "running"; rounds += 1) {
      world.visit((index) => ({ kind: "disallowed", index, reason: "robots.txt" }));
      world.settleBacklog();
    }
    expect(rounds).to.equal(RECORDS_SPARE_MIN + 1);
  });

  it("sitemaps: up to CRAWL_SITEMAPS_MAX, a few at a time", () => {
    const world = new JobWorld().start({ limit: 100_000 });
    const files = numbered(1_000, `${START}map-`);
    world.learn({ sitemaps: files });
    world.settleBacklog();
    world.visit(fetched());
    let turn = world.grant();
    expect(turn.requests).to.have.length(SITEMAPS_OPEN_MAX);
    const [first] = turn.requests;
    for (let slice = 0; slice < 6; slice += 1) {
      const nested = numbered(200, `${START}nested-${slice}-`);
      read(world, turn, { url: first?.url ?? "", nested, end: undefined });
    }
    let asked = 0;
    for (;;) {
      world.settleBacklog();
      for (const { url } of turn.requests) read(world, turn, { url });
      asked += turn.requests.length;
      const next = world.tryGrant();
      if (next === undefined) break;
      turn = next;
    }
    expect(asked).to.equal(CRAWL_SITEMAPS_MAX);
    expect(world.summary()).to.deep.include({
      status: "completed",
      messages: [`The crawl reads ${CRAWL_SITEMAPS_MAX} sitemaps; others were left out`],
    });
    checkJob(world);
  });

  it("a job has at most CRAWL_MESSAGES_MAX messages", () => {
    const world = new JobWorld().start();
    const sitemaps = numbered(CRAWL_MESSAGES_MAX + 5, `${START}map-`);
    world.learn({ sitemaps });
    world.visit(fetched());
    for (const turn of [world.grant()]) {
      for (const { url } of turn.requests) {
        read(world, turn, { url, end: { failed: "HTTP 410", retry: false } });
      }
    }
    expect(world.summary().messages).to.have.length(CRAWL_MESSAGES_MAX - 1);
  });

  it("links wait for sitemaps up to BACKLOG_HELD_ROWS_MAX rows", () => {
    const world = new JobWorld().start({ limit: 100_000 });
    world.learn();
    const turn = world.grant();
    world.report(turn, fetched(numbered(9_000, `${START}${"x".repeat(50)}`))(0));
    expect(world.settleBacklog()).to.equal(0);
    const lanes = () => world.state.backlog.links.next - world.state.backlog.links.first;
    expect(lanes()).to.be.within(5, BACKLOG_HELD_ROWS_MAX - 1);
    read(world, turn, { url: SITEMAP, urls: [{ url: A }] });
    world.settleBacklog();
    expect(world.records()[1]?.url).to.equal(A);
    expect(world.summary().total).to.equal(9_002);
    checkJob(world);
  });

  it("links past the limit of one message are admitted by several, each exactly once", () => {
    const world = new JobWorld().start({ source: "links", limit: 100_000 });
    world.learn();
    world.visit(fetched(numbered(63, `${START}p`)));
    const turn = world.grant(63);
    const links = turn.requests.flatMap((_, page) => numbered(PAGE_LINKS_MAX, `${START}${page}/`));
    for (const [page, request] of turn.requests.slice(0, 3).entries()) {
      if (request.type !== "page") continue;
      const own = links.slice(page * PAGE_LINKS_MAX, (page + 1) * PAGE_LINKS_MAX - 50);
      world.report(turn, fetched([...own, ...numbered(50, `${START}nav`)])(request.index));
      if (page === 1) world.settleBacklog();
    }
    expect(world.settleBacklog()).to.be.above(20);
    expect(world.summary().total).to.equal(64 + 50 + 3 * (PAGE_LINKS_MAX - 50));
    expect(world.state.backlog.links.first).to.equal(world.state.backlog.links.next);
    checkJob(world);
  }).timeout(60_000);

  it("with the most expensive patterns a message examines fewer addresses", () => {
    const excludePatterns = Array.from(
      { length: 100 },
      (_, number) => `${"**a".repeat(340)}${number}`,
    );
    const world = new JobWorld().start({ source: "links", options: { excludePatterns } });
    world.learn();
    world.visit(fetched(numbered(20, `${START}${"b".repeat(4_000)}`)));
    expect(world.settleBacklog()).to.be.above(5);
    expect(world.summary().total).to.equal(10);
  });

  it("a page with links to very many hosts notifies each site within the limits of a message", () => {
    const world = new JobWorld().start({
      ...{ source: "links", limit: 1_000, options: { includeExternalLinks: true } },
    });
    world.learn();
    world.take("site");
    world.visit(fetched(Array.from({ length: 500 }, (_, host) => `http://h${host}.example/`)));
    world.settleBacklog();
    const told: string[] = [];
    for (let visited = 0; visited < 500; visited += 1) {
      const wants = world
        .take("site")
        .filter(({ message, key }) => message === "want" && key !== HOST);
      for (const { key, input } of wants) {
        told.push(key);
        expect(input).to.deep.include({ wants: 1 });
      }
      world.visit(fetched(), told[visited]);
    }
    expect(new Set(told).size).to.equal(500);
    expect(told).to.have.length(500);
    expect(world.rows.has("h/h7.example")).to.equal(false);
    checkJob(world);
  });
});
