import { expect } from "chai";
import { CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import {
  CONFORMANCE_NOTE,
  conformanceFile,
  needsConformance,
} from "../../../../scripts/testing/conformance.ts";
import { crawlUrl, crawlUrlKey } from "./crawl-url.ts";

describe("crawlUrl", () => {
  it("crawlUrl() normalises as browsers do, without fragment and credentials", () => {
    expect(urlOf("HTTP://User:Pw@EXAMPLE.com:80/a/../b/%7e?q#f")).to.equal(
      "http://example.com/b/%7e?q",
    );
    expect(urlOf("../c d", "https://a.example/x/y")).to.equal("https://a.example/c%20d");
    expect(urlOf("https://bücher.example")).to.equal("https://xn--bcher-kva.example/");
    expect(urlOf(" //b.example\n/x ", "https://a.example/")).to.equal("https://b.example/x");
    expect(urlOf("http://a.example/\u0000\ud800")).to.equal("http://a.example/%00%EF%BF%BD");
  });

  it("crawlUrl() drops the dot at the end of a host name, so that both spellings share one pace", () => {
    expect(urlOf("https://a.example./b.")).to.equal("https://a.example/b.");
    expect(urlOf("http://a.example.:8080/")).to.equal("http://a.example:8080/");
    expect(urlOf("http://127.0.0.1./")).to.equal("http://127.0.0.1/");
    expect(urlOf("http://a.example../")).to.equal("http://a.example/");
    expect(reasonOf("http://./")).to.equal("the address cannot be parsed");
    expect(urlOf("http://[::1]/")).to.equal("http://[::1]/");
  });

  it("crawlUrl() reports why an address cannot be crawled", () => {
    expect(reasonOf("mailto:a@b.example")).to.equal("the scheme is mailto, not http or https");
    expect(reasonOf("file:///etc/passwd")).to.equal("the scheme is file, not http or https");
    for (const text of ["", "/a", "http://", "http://[", "https://example%2Xcom/", "http://a b/"]) {
      expect(reasonOf(text), text).to.equal("the address cannot be parsed");
    }
  });

  it("crawlUrl() accepts CRAWL_URL_CHARS_MAX characters, counted before and after encoding", () => {
    const base = "https://a.example/";
    const longest = base + "a".repeat(CRAWL_URL_CHARS_MAX - base.length);
    expect(urlOf(longest)).to.equal(longest);
    const tooLong = `the address is longer than ${CRAWL_URL_CHARS_MAX} characters`;
    expect(reasonOf(`${longest}a`)).to.equal(tooLong);
    expect(reasonOf(base + "é".repeat(2_000))).to.equal(tooLong);
    expect(reasonOf(base + "a".repeat(100_000))).to.equal(tooLong);
    expect(reasonOf("a".repeat(CRAWL_URL_CHARS_MAX), base)).to.equal(tooLong);
  });
});

describe("crawlUrlKey", () => {
  it("crawlUrlKey() is the same for all spellings of a page", () => {
    expect(crawlUrlKey("http://a.example/%7Eb%2fc%c3%A9%20")).to.equal(
      "http://a.example/~b%2Fc%C3%A9%20",
    );
    expect(crawlUrlKey("http://a.example/b?")).to.equal("http://a.example/b");
  });

  it("crawlUrlKey() differs for addresses that may be different pages", () => {
    for (const url of [
      "http://a.example/B/",
      "http://a.example/?b=2&a=1&a",
      "http://a.example/?a=?",
    ]) {
      expect(crawlUrlKey(url)).to.equal(url);
    }
  });

  it("crawlUrlKey() of a key returns that key", () => {
    for (const url of [
      "http://a.example/%2541",
      "http://a.example/%25%34%31",
      "http://a.example/%zz%",
    ]) {
      const key = crawlUrlKey(url);
      expect(crawlUrlKey(new URL(key).href)).to.equal(crawlUrlKey(key));
    }
  });
});

describe(`published address material${CONFORMANCE_NOTE}`, () => {
  before(needsConformance);

  it("crawlUrl() refuses invalid addresses", () => {
    const lines = linesOf("invalidUrls.csv");
    expect(lines).to.have.length(2);
    for (const line of lines) expect(crawlUrl(line).valid, line).to.equal(false);
  });

  it("crawlUrlKey() is the same for every pair that differs in encoding, case or dots", () => {
    const pairs = linesOf("weirdToNormalizedUrls.csv").map((line) => line.split(", "));
    const same = pairs.filter(([weird = "", normal = ""]) => keyOf(weird) === keyOf(normal));
    // The remaining pairs differ in ways that only guesses can undo: order of the query, session ids, broken schemes
    // and encodings.
    expect(pairs.length).to.be.above(100);
    expect(same.length / pairs.length).to.be.above(0.7);
  });
});

function urlOf(text: string, base?: string): string {
  const url = crawlUrl(text, base);
  return url.valid ? url.url : url.reason;
}

function reasonOf(text: string, base?: string): string | undefined {
  const url = crawlUrl(text, base);
  return url.valid ? undefined : url.reason;
}

function keyOf(text: string): string {
  return crawlUrlKey(urlOf(text));
}

function linesOf(name: string): string[] {
  const text = conformanceFile("crawler-commons", "normalizer", name).toString();
  return text
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("# ") && line !== "#");
}
