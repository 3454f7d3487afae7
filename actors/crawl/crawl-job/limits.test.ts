import { expect } from "chai";
import {
  CRAWL_MESSAGE_URL_CHARS,
  CRAWL_PATTERNS_MAX,
  LETTERS_PER_ROW,
  PAGE_LINKS_MAX,
} from "../../../schemas/crawl/limits.ts";
import { fetched, JobWorld, START } from "../../../scripts/testing/job-world.ts";
import type { HandlerContext } from "../../runtime/kinds/define-actor.ts";
import {
  BACKLOG_ROW_CHARS_MAX,
  BACKLOG_ROWS_MAX,
  BACKLOG_SPARE_ROWS_MAX,
} from "./discovery/backlog.ts";
import { type CrawlJobRow, INITIAL } from "./state/crawl-job-state.ts";
import {
  JobDraft,
  STEP_BYTES_MAX,
  STEP_HOSTS_MAX,
  STEP_ROWS_MAX,
  STEP_WORK_MAX,
} from "./state/job-draft.ts";
import { waitingOfRow } from "./state/packed-rows.ts";
import { PATTERNS_PER_ROW } from "./state/plan.ts";

const numbered = (count: number, prefix = START) =>
  Array.from({ length: count }, (_, number) => `${prefix}${number}`);

/** A job that examines its links at once: it has no sitemaps to wait for. */
const linking = (plan: object = {}) => {
  const world = new JobWorld().start({ source: "links", limit: 100_000, ...plan });
  world.learn();
  return world;
};
const rowsOf = (world: JobWorld, prefix: string) =>
  [...world.rows.keys()].filter((row) => row.startsWith(prefix));

describe("limits of one message of a crawl job", () => {
  const draftOf = () => {
    const context = { key: "5".repeat(32), now: 0, rows: new Map() };
    return new JobDraft(INITIAL, context as unknown as HandlerContext<CrawlJobRow>);
  };

  it("one message examines no more addresses after STEP_ROWS_MAX changed rows", () => {
    const draft = draftOf();
    const change = (row: string) => draft.write(row, { type: "known", known: "" });
    for (let row = 0; row < STEP_ROWS_MAX - 1; row += 1) change(`u/${row}`);
    change("u/0");
    expect(draft.isFull).to.equal(false);
    change("u/last");
    expect(draft.isFull).to.equal(true);
  });

  it("one message examines no more addresses past STEP_BYTES_MAX, STEP_WORK_MAX and STEP_HOSTS_MAX", () => {
    const spent = (bytes: number, work: number, hosts: number) => {
      const draft = draftOf();
      draft.spend({ bytes, work });
      for (let host = 0; host < hosts; host += 1) draft.touchedHosts.add(`${host}.example`);
      return draft.isFull;
    };
    expect(spent(STEP_BYTES_MAX - 1, STEP_WORK_MAX - 1, STEP_HOSTS_MAX - 1)).to.equal(false);
    expect(spent(STEP_BYTES_MAX, 0, 0)).to.equal(true);
    expect(spent(0, STEP_WORK_MAX, 0)).to.equal(true);
    expect(spent(0, 0, STEP_HOSTS_MAX)).to.equal(true);
  });

  it("links of many hosts are admitted by several messages, and none is left out", () => {
    const world = linking({ options: { includeExternalLinks: true } });
    const hosts = Array.from({ length: STEP_HOSTS_MAX * 2 }, (_, n) => `https://h${n}.example/`);
    world.visit(fetched(hosts));
    expect(world.summary().total).to.be.within(2, STEP_HOSTS_MAX + 1);
    expect(world.settleBacklog()).to.be.above(0);
    expect(world.summary().total).to.equal(1 + hosts.length);
  });
});

describe("limits of the stored crawl job", () => {
  it("patterns are stored in rows of PATTERNS_PER_ROW, and all apply", () => {
    for (const [count, rows] of [
      [PATTERNS_PER_ROW, 1],
      [PATTERNS_PER_ROW + 1, 2],
      [CRAWL_PATTERNS_MAX, CRAWL_PATTERNS_MAX / PATTERNS_PER_ROW],
    ] as const) {
      const includePatterns = Array.from({ length: count }, (_, number) => `/p${number}`);
      const world = linking({ options: { includePatterns } });
      expect(rowsOf(world, "patterns/include/")).to.have.length(rows);
      world.visit(fetched([`${START}p0`, `${START}p${count - 1}`, `${START}p${count}`]));
      world.settleBacklog();
      const statuses = world.statuses();
      expect(statuses[`${START}p${count - 1}`]).to.equal("queued");
      expect(statuses[`${START}p${count}`]).to.equal("skipped");
    }
  });

  it("statuses are stored as letters in rows of LETTERS_PER_ROW, and listings cross the rows", () => {
    const world = linking();
    const lettersOf = (row: string) => {
      const found = world.rows.get(row);
      return found?.type === "letters" ? found.letters.length : undefined;
    };
    world.visit(fetched(numbered(LETTERS_PER_ROW - 1)));
    world.settleBacklog();
    expect([lettersOf("z/0"), lettersOf("z/1")]).to.deep.equal([LETTERS_PER_ROW, undefined]);
    world.visit(fetched([`${START}one-more`]));
    world.settleBacklog();
    expect([lettersOf("z/0"), lettersOf("z/1")]).to.deep.equal([LETTERS_PER_ROW, 1]);
    const cursor = String(LETTERS_PER_ROW - 2);
    const urls = world.list({ cursor, count: 5 }).entries.map(({ entry }) => entry.url);
    expect(urls.at(-1)).to.equal(`${START}one-more`);
    expect(world.records({ status: "queued" })).to.have.length(LETTERS_PER_ROW - 1);
  });

  it("waiting addresses are stored in rows of BACKLOG_ROW_CHARS_MAX characters", () => {
    const world = linking();
    // All links have the same length, so a full row holds exactly `perRow` links.
    const chars = 500;
    const perRow = Math.ceil(BACKLOG_ROW_CHARS_MAX / chars);
    const links = numbered(10 * perRow).map((link) => link.padEnd(chars, "-"));
    world.visit(fetched(links));
    const waiting = rowsOf(world, "b/links/").map(
      (row) => waitingOfRow(world.rows.get(row)).found.length,
    );
    expect(waiting.length).to.be.above(2);
    expect(Math.max(...waiting)).to.equal(perRow);
    world.settleBacklog();
    expect(world.summary().total).to.equal(1 + links.length);
    expect(rowsOf(world, "b/")).to.deep.equal([]);
  });

  it("the backlog has at most BACKLOG_ROWS_MAX rows; past that a message says that links were left out", function () {
    this.timeout(60_000);
    const world = linking();
    const chars = 1_000;
    const perRow = Math.ceil(BACKLOG_ROW_CHARS_MAX / chars);
    const perPage = 10 * perRow;
    world.visit(fetched(numbered(60)));
    world.settleBacklog();
    const messages = () => world.summary().messages;
    const rows = () => world.state.backlog.links.next - world.state.backlog.links.first;
    // Pages arrive faster than the job examines their links.
    let pages = 0;
    const more = (count: number) => {
      pages += 1;
      return numbered(count, `${START}${pages}/`).map((link) => `${link}-`.padEnd(chars, "x"));
    };
    world.visit(fetched(more(perPage * 2)));
    while (rows() <= BACKLOG_ROWS_MAX - 10) world.visit(fetched(more(perPage)));
    world.visit(fetched(more(perRow * (BACKLOG_ROWS_MAX - rows()))));
    expect(rows()).to.equal(BACKLOG_ROWS_MAX);
    expect(messages()).to.deep.equal([]);
    world.visit(fetched(more(1)));
    expect(rows()).to.equal(BACKLOG_ROWS_MAX);
    expect(messages()).to.have.length(1);
    expect(messages()[0]).to.contain("some were left out");
  });

  it("the backlog has BACKLOG_SPARE_ROWS_MAX rows at the page limit, and the rest causes no message", () => {
    const world = linking({ limit: 2 });
    const links = numbered(PAGE_LINKS_MAX).map((link) => link.padEnd(200, "-"));
    world.visit(fetched(links));
    world.settleBacklog();
    expect(world.summary()).to.include({ total: 2 });
    const { first, next } = world.state.backlog.links;
    expect(next - first).to.equal(BACKLOG_SPARE_ROWS_MAX);
    expect(world.summary().messages).to.deep.equal([]);
  });

  it("a message names CRAWL_MESSAGE_URL_CHARS of an address at most", () => {
    for (const extra of [0, 1]) {
      const url = `${START}sitemap-`.padEnd(CRAWL_MESSAGE_URL_CHARS + extra, "a");
      const world = new JobWorld().start();
      world.learn({ sitemaps: [url] });
      const { turn, requests } = world.grant();
      for (const request of requests) {
        if (request.type !== "sitemap") continue;
        const end = { failed: "HTTP 404", retry: false };
        const { nesting } = request;
        world.run("sitemapRead", { turn, url: request.url, urls: [], nested: [], nesting, end });
      }
      expect(world.summary().messages).to.deep.equal([
        `HTTP 404 (${url.slice(0, CRAWL_MESSAGE_URL_CHARS)})`,
      ]);
    }
  });
});
