import { expect } from "chai";
import { CRAWL_DELAY_MS, HOST_AWAY_MS, TURN_LATE_MS } from "../../../schemas/crawl/limits.ts";
import type { CrawlIntent } from "../../../schemas/crawl/site.ts";
import { hex, rulesOutcome, SiteDriver } from "../../../scripts/testing/site-driver.ts";
import { CLOCK_SET_MS_MIN } from "../../runtime/lib/steady-clock.ts";
import { TURN_GO_MS_MAX } from "./next-turn.ts";
import { ROBOTS_RETRY_MS } from "./site-robots.ts";

const HOUR_MS = 3_600_000;
const intent: CrawlIntent = { purposes: ["search"] };
const account = hex(0xa);
const job = hex(0x10b);
const urls = ["https://a.example/page"];

describe("a site whose time of day is set", () => {
  for (const byMs of [-3 * HOUR_MS, 3 * HOUR_MS]) {
    const set = byMs < 0 ? "back" : "forward";

    it(`begin() waits for the rest of the delay if the clock was set ${set}`, () => {
      const site = fetched();
      site.aheadMs += byMs;
      site.now += 100;
      expect(begin(site)).to.include({ state: "go", waitMs: CRAWL_DELAY_MS - 100 });
    });

    it(`begin() waits for the rest of a pause if the clock was set ${set}`, () => {
      const site = fetched({ awayMs: 0 });
      site.aheadMs += byMs;
      site.now += HOST_AWAY_MS - TURN_GO_MS_MAX;
      site.tell("look", {});
      expect(begin(site)).to.include({ state: "go", waitMs: TURN_GO_MS_MAX });
    });
  }

  it("consult() fetches a failed robots.txt again when it is due although the clock was set back", () => {
    const site = new SiteDriver({ now: 100 * HOUR_MS });
    site.process = "process";
    const consult = () => site.tell("consult", { scheme: "https", intent });
    consult();
    const at = site.now;
    site.fetched({ kind: "disallow_all", because: "it answered 503" });
    site.aheadMs -= 3 * HOUR_MS;
    site.now = at + ROBOTS_RETRY_MS - 1;
    expect(consult()).to.deep.equal({ known: true });
    site.now += 1_000;
    expect(consult()).to.deep.equal({ known: false });
  });

  it("begin() of another process waits hardly longer than the delay after the clock was set back", () => {
    for (const process of ["another", undefined]) {
      const site = fetched();
      site.process = process;
      site.aheadMs -= 3 * HOUR_MS;
      site.tell("look", {});
      site.now += TURN_LATE_MS + CRAWL_DELAY_MS + 10;
      expect(begin(site)).to.include({ state: "go", waitMs: TURN_GO_MS_MAX });
    }
  });

  it("begin() changes nothing while the clock is not set, but for a new process", () => {
    const site = fetched();
    begin(site);
    begin(site);
    expect(site.changed).to.equal(false);
    site.aheadMs += CLOCK_SET_MS_MIN - 1;
    begin(site);
    expect(site.changed).to.equal(false);
    site.process = "another";
    begin(site);
    expect(site.changed).to.equal(true);
    begin(site);
    expect(site.changed).to.equal(false);
  });
});

/** Returns a site whose robots.txt has just been fetched for a job with many pages. */
function fetched(end: { awayMs?: number } = {}): SiteDriver {
  const site = new SiteDriver({ now: 100 * HOUR_MS });
  site.process = "process";
  site.tell("want", { account, job, wants: 20, tell: [{ scheme: "https", intent }] });
  const turn = site.fetched(rulesOutcome());
  site.tell("turnFinished", { turn, ...end });
  return site;
}

function begin(site: SiteDriver) {
  const [turn = ""] = Object.keys(site.state.pace.turns);
  return site.tell("begin", { turn, urls, intent });
}
