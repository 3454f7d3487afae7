import { expect } from "chai";
import { z } from "zod";
import { RobotsRules } from "../../../../schemas/crawl/robots-rules.ts";
import { STATE_BYTES_MAX } from "../../../../schemas/limits.ts";
import {
  CONFORMANCE_NOTE,
  conformanceFile,
  conformanceFiles,
  needsConformance,
} from "../../../../scripts/testing/conformance.ts";
import { parseRobots } from "./parse-robots.ts";
import { robotsVerdict } from "./robots-verdict.ts";

const Vectors = z.array(
  z.object({
    file: z.string(),
    robots: z.string(),
    url: z.string(),
    ua: z.string(),
    exp: z.enum(["ALLOWED", "DISALLOWED"]),
  }),
);
const URL_OF_FILE = "http://www.domain.com/robots.txt";

describe(`published robots.txt material${CONFORMANCE_NOTE}`, () => {
  before(needsConformance);

  it("robotsVerdict() agrees with all 400 vectors but five that contradict RFC 9309", () => {
    const vectors = Vectors.parse(JSON.parse(conformanceFile("robots-ctc.json").toString()));
    expect(vectors).to.have.length(400);
    const failed = vectors.filter(({ robots, url, ua, exp }) => {
      const bytes = Buffer.from(robots, "base64");
      const rules = parseRobots(bytes, { productToken: ua, url: URL_OF_FILE });
      return robotsVerdict(rules, url).allowed !== (exp === "ALLOWED");
    });
    // Section 2.2.2: /robots.txt itself is always allowed, and %62 is "b". The vectors follow Google's parser.
    const ours = failed.map(({ file, url, ua }) => `${file} ${ua} ${url}`);
    expect(ours).to.deep.equal([
      "correctness/non-ascii-paths.textproto FooBot http://foo.bar/foo/bar/baz",
      "stress/327748.textproto asdfbot http://m.example.com/robots.txt",
      "stress/369883.textproto BarBot http://example.com/robots.txt",
      "stress/369883.textproto AB http://example.com/robots.txt",
      "stress/860237.textproto XYZ http://example.com/robots.txt",
    ]);
  });

  it("parseRobots() turns every file into a form that survives JSON and fits an actor", () => {
    const files = conformanceFiles("crawler-commons", "robots");
    expect(files).to.have.length(24);
    for (const name of files) {
      const rules = of(name, "mybot");
      const stored = JSON.stringify(rules);
      expect(RobotsRules.parse(JSON.parse(stored)), name).to.deep.equal(rules);
      expect(stored.length).to.be.below(STATE_BYTES_MAX);
      expect(rules.truncated, name).to.equal(false);
    }
  });

  it("parseRobots() applies a delay to the agents named before it, and merges their rules", () => {
    const file = "crawl-delay-group-merging.txt";
    const delays = ["mybot", "yourbot", "otherbot"].map((agent) => of(file, agent).crawlDelayMs);
    expect(delays).to.deep.equal([10_000, undefined, 30_000]);
    expect(allows(file, "mybot", "/private/a")).to.equal(false);
    expect(allows(file, "yourbot", "/private/a")).to.equal(false);
    expect(allows(file, "yourbot", "/login/")).to.equal(false);
    expect(allows(file, "mybot", "/login/")).to.equal(true);
    expect(allows(file, "otherbot", "/private/")).to.equal(true);
  });

  it("parseRobots() applies a signal before all groups to every agent", () => {
    const { contentSignal } = of("extensions-group-merging.txt", "mybot");
    expect(contentSignal).to.deep.equal({ search: true, "ai-train": true, "ai-input": true });
  });

  it("parseRobots() reads files with a byte order mark, UTF-8 and UTF-16", () => {
    const forms = ["utf8", "utf16le", "utf16be"].map(
      (form) => of(`robots-with-${form}-bom.txt`, "mybot").rules,
    );
    expect(forms[0]).to.include("2-/login.aspx");
    expect(forms[1]).to.deep.equal(forms[0]);
    expect(forms[2]).to.deep.equal(forms[0]);
  });

  it("parseRobots() makes sitemaps absolute, once each, in their own case", () => {
    expect(of("relative-sitemap-robots.txt", "a").sitemaps).to.deep.equal([
      "http://www.domain.com/sitemap.xml",
    ]);
    expect(of("sitemap-robots.txt", "a").sitemaps).to.deep.equal([
      "http://domain.com/sitemap.xml",
      "http://domain.com/dir/MixedCased-sitemap.xml",
    ]);
    expect(of("sitemap-robots-dedup.txt", "a").sitemaps).to.have.length(1);
  });

  it("robotsVerdict() follows the examples of RFC 9309", () => {
    const simple = "rfc9309-example-simple-robots.txt";
    expect(allows(simple, "foobot", "/example/page.html")).to.equal(true);
    expect(allows(simple, "foobot", "/example/disallowed.gif")).to.equal(false);
    expect(allows(simple, "barbot", "/example/page.html")).to.equal(false);
    expect(allows(simple, "quxbot", "/")).to.equal(true);
    const longest = "rfc9309-example-longest-match-robots.txt";
    expect(allows(longest, "foobot", "/example/page/")).to.equal(true);
    expect(allows(longest, "foobot", "/example/page/disallowed.gif")).to.equal(false);
  });

  it("parseRobots() accepts misspellings and missing colons", () => {
    // A product token has no digits, so bot1, bot2 and bot3 are one.
    expect(of("directive-typos-robots.txt", "bot").rules).to.deep.equal([
      "3-/dissalow/",
      "6-/useragent/",
      "9-/useg-agent/",
      "12-/useragent-no-colon/",
    ]);
    expect(of("format-errors-robots.txt", "bot")).to.deep.include({
      rules: [
        "2-/whitespace-before-colon/",
        "3-/no-colon/",
        "6-/no-colon-useragent/",
        "9+/whitespace-before-colon",
        "10-/",
      ],
      sitemaps: ["http://www.domain.com/sitemap.xml"],
    });
  });
});

function of(name: string, productToken: string): RobotsRules {
  const bytes = conformanceFile("crawler-commons", "robots", name);
  return parseRobots(bytes, { productToken, url: URL_OF_FILE });
}

function allows(name: string, agent: string, path: string): boolean {
  return robotsVerdict(of(name, agent), `http://www.domain.com${path}`).allowed;
}
