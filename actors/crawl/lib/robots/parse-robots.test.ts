import { expect } from "chai";
import {
  CRAWL_DELAY_MS_MAX,
  CRAWL_URL_CHARS_MAX,
  ROBOTS_BYTES_MAX,
  ROBOTS_SITEMAPS_MAX,
} from "../../../../schemas/crawl/limits.ts";
import { STATE_BYTES_MAX } from "../../../../schemas/limits.ts";
import { processorTime } from "../../../../scripts/testing/processor-time.ts";
import { parseRobots, ROBOTS_KEPT_CHARS_MAX, ROBOTS_WILDCARDS_MAX } from "./parse-robots.ts";
import { ROBOTS_LINE_BYTES_MAX } from "./robots-lines.ts";

describe("parseRobots", () => {
  it("parseRobots() reads only the groups of our token, if there are any", () => {
    const text = "User-agent: *\nDisallow: /a\nUser-agent: TestBot/1.0\nDisallow: /b\n";
    expect(parse(text).rules).to.deep.equal(["4-/b"]);
    expect(parse(text, "Other").rules).to.deep.equal(["2-/a"]);
    expect(parse("User-agent: testbot").rules).to.deep.equal([]);
  });

  it("parseRobots() does not match other names", () => {
    for (const name of ["TestBotX", "Test", "TestBot-News", "Test Bot", "9TestBot"]) {
      expect(parse(`User-agent: ${name}\nDisallow: /`).rules, name).to.deep.equal([]);
    }
  });

  it("parseRobots() counts lines with any line ending", () => {
    const lines = "user-agent:*\r\n\r\rdisallow:/a\n\ndisallow:/b\r\n\ndisallow:/c";
    expect(parse(lines).rules).to.deep.equal(["4-/a", "6-/b", "8-/c"]);
  });

  it("parseRobots() ignores rules ahead of the first agent, empty ones and repeated ones", () => {
    const text = "Disallow: /a\nUser-agent: *\nDisallow:\nDisallow: /b\nAllow: /b\nDisallow: /b";
    expect(parse(text).rules).to.deep.equal(["4-/b", "5+/b"]);
  });

  it("parseRobots() accepts a line without its colon whose value has one", () => {
    const text = "Sitemap https://a.example/s.xml\nuser-agent *\ndisallow /a:b\nSitemap x y:z";
    expect(parse(text)).to.deep.include({
      rules: ["3-/a:b"],
      sitemaps: ["https://a.example/s.xml"],
    });
  });

  it("parseRobots() normalizes patterns", () => {
    const text = 'User-agent: *\nDisallow: /é/%e3 b\\\u0001"<>\u0000';
    expect(parse(text).rules).to.deep.equal(["2-/%C3%A9/%E3%20b%5C%01%22%3C%3E%00"]);
  });

  it("parseRobots() reads Crawl-delay with fractions, the longer of two, within its limit", () => {
    const delays = [
      "0",
      "0.25",
      ".5",
      "1.",
      "7 # pages",
      "3\nCrawl-delay: 2",
      "9e9",
      "99999999999",
    ];
    expect(
      delays.map((delay) => parse(`User-agent: *\nCrawl-delay: ${delay}`).crawlDelayMs),
    ).to.deep.equal([0, 250, 500, 1_000, 7_000, 3_000, 9_000, CRAWL_DELAY_MS_MAX]);
    for (const delay of ["-1", "soon", "", "NaN", "Infinity"]) {
      expect(parse(`User-agent: *\nCrawl-delay: ${delay}`)).not.to.have.property("crawlDelayMs");
    }
  });

  it("parseRobots() reads Content-Signal per group, the last of a label", () => {
    const text = [
      "Content-Signal: search=no, use=full",
      "User-agent: *",
      "Content-Signal: search=yes , AI-Train=NO,ai-input=maybe,use=reference,x=y,search",
      "Content-signal: ai-train=yes",
      "Allow: /",
      "User-agent: testbot",
      "Content-Signal: ai-train=no",
    ].join("\n");
    expect(parse(text, "other").contentSignal).to.deep.equal({
      search: true,
      "ai-train": true,
      use: "reference",
    });
    expect(parse(text).contentSignal).to.deep.equal({
      search: false,
      "ai-train": false,
      use: "full",
    });
  });

  it("parseRobots() continues a list of agents across other records", () => {
    const text =
      "User-agent: testbot\nCrawl-delay: 1\nSitemap: /s\nHost: a\nUser-agent: b\nDisallow: /";
    expect(parse(text).rules).to.deep.equal(["6-/"]);
  });

  it("parseRobots() accepts sitemaps anywhere in the file, but only http addresses of limited length", () => {
    const text = ["ftp://a/s", "//b.example/s#x", "s.xml", "http://[", `/${"a".repeat(9_000)}`, ""]
      .map((url) => `Sitemap: ${url}`)
      .join("\n");
    expect(parse(text).sitemaps).to.deep.equal([
      "https://b.example/s",
      "https://a.example/s.xml",
      "https://a.example/robots.txt",
    ]);
    const base = "https://a.example/".length;
    const long = (chars: number) => parse(`Sitemap: /${"a".repeat(chars - base)}`).sitemaps.length;
    expect([long(CRAWL_URL_CHARS_MAX), long(CRAWL_URL_CHARS_MAX + 1)]).to.deep.equal([1, 0]);
  });

  it("parseRobots() keeps ROBOTS_SITEMAPS_MAX sitemaps and reports when there were more", () => {
    const lines = (count: number) =>
      parse(Array.from({ length: count }, (_, index) => `Sitemap: /${index}`).join("\n"));
    expect(lines(ROBOTS_SITEMAPS_MAX).truncated).to.equal(false);
    const past = lines(ROBOTS_SITEMAPS_MAX + 1);
    expect([past.sitemaps.length, past.truncated]).to.deep.equal([ROBOTS_SITEMAPS_MAX, true]);
  });

  it("parseRobots() reads ROBOTS_BYTES_MAX bytes and reports when there were more", () => {
    const rule = "\nUser-agent: *\nDisallow: /a";
    const fill = (bytes: number) => `${"#".repeat(bytes - rule.length)}${rule}`;
    expect(parse(fill(ROBOTS_BYTES_MAX))).to.deep.include({ rules: ["3-/a"], truncated: false });
    const past = parse(fill(ROBOTS_BYTES_MAX + 1));
    expect(past).to.deep.include({ rules: ["3-/"], truncated: true });
  });

  it("parseRobots() reads ROBOTS_LINE_BYTES_MAX bytes of a line", () => {
    const head = "Disallow: /";
    const line = (bytes: number) => {
      const [rule = ""] = parse(`User-agent: *\n${head}${"a".repeat(bytes - head.length)}`).rules;
      return rule.length - "2-/".length + head.length;
    };
    expect(line(ROBOTS_LINE_BYTES_MAX)).to.equal(ROBOTS_LINE_BYTES_MAX);
    expect(line(ROBOTS_LINE_BYTES_MAX + 1)).to.equal(ROBOTS_LINE_BYTES_MAX);
  });

  it("parseRobots() reads wildcards past ROBOTS_WILDCARDS_MAX as the broader prohibition", () => {
    const stars = Array.from({ length: ROBOTS_WILDCARDS_MAX }, (_, index) => `Allow: /${index}*b`);
    const whole = parse(["User-agent: *", ...stars].join("\n"));
    expect([whole.rules.length, whole.truncated]).to.deep.equal([ROBOTS_WILDCARDS_MAX, false]);
    const more = ["Allow: /x*y", "Disallow: /z/*y", "Disallow: *.pdf", "Allow: /plain"];
    const past = parse(["User-agent: *", ...stars, ...more].join("\n"));
    const rest = past.rules.slice(ROBOTS_WILDCARDS_MAX);
    expect(rest).to.deep.equal(["5003-/z/", "5004-/", "5005+/plain"]);
    expect(past.truncated).to.equal(true);
  });

  it("parseRobots() keeps rules that fit an actor, from any file of 500 KiB", () => {
    const short = Array.from({ length: 60_000 }, (_, index) => `allow:/${index.toString(36)}`);
    const whole = parse(`user-agent:*\n${short.join("\n")}`);
    expect(whole.rules.length).to.be.above(40_000);
    const encoded = Array.from({ length: 600 }, (_, index) => `allow:/${index}${"é".repeat(400)}`);
    for (const rules of [whole, parse(`user-agent:*\n${encoded.join("\n")}`)]) {
      expect(JSON.stringify(rules).length).to.be.below(ROBOTS_KEPT_CHARS_MAX + 1_000);
      expect(ROBOTS_KEPT_CHARS_MAX).to.be.below(STATE_BYTES_MAX);
      expect(rules.truncated).to.equal(true);
    }
  });

  it("parseRobots() accepts any bytes within a time limit", () => {
    const noise = Uint8Array.from({ length: ROBOTS_BYTES_MAX }, (_, index) => (index * 7919) % 256);
    const hostile = [
      noise,
      new Uint8Array(ROBOTS_BYTES_MAX),
      Buffer.alloc(ROBOTS_BYTES_MAX, "\n"),
      Buffer.alloc(ROBOTS_BYTES_MAX, " "),
      Buffer.alloc(ROBOTS_BYTES_MAX, ":"),
      Buffer.alloc(ROBOTS_BYTES_MAX, "user-agent:*\n"),
      Buffer.alloc(ROBOTS_BYTES_MAX, "sitemap:/\n"),
      Uint8Array.of(0xff, 0xfe, 0x41),
      new Uint8Array(),
    ];
    const takenMs = processorTime();
    for (const bytes of hostile) expect(parse(bytes).rules).to.deep.equal([]);
    expect(takenMs()).to.be.below(5_000);
  }).timeout(120_000);
});

function parse(text: string | Uint8Array, productToken = "TestBot") {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  return parseRobots(bytes, { productToken, url: "https://a.example/robots.txt" });
}
