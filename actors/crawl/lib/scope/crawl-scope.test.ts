import { expect } from "chai";
import { CRAWL_PATTERN_CHARS_MAX, CRAWL_PATTERNS_MAX } from "../../../../schemas/crawl/limits.ts";
import { processorTime } from "../../../../scripts/testing/processor-time.ts";
import { crawlScope, type ScopeOptions } from "./crawl-scope.ts";

const START = "https://www.example.co.uk/start";

describe("crawlScope", () => {
  it("crawlScope() stays on the start's host, on http and https", () => {
    expect(reason("https://www.example.co.uk/a", {})).to.equal(undefined);
    expect(reason("http://www.example.co.uk/a", {})).to.equal(undefined);
    expect(reason("https://blog.example.co.uk/", {})).to.equal(
      "the host is blog.example.co.uk, not www.example.co.uk",
    );
    expect(reason("https://www.example.co.uk:8443/", {})).to.be.a("string");
  });

  it("crawlScope() treats a host with and without www. as the same", () => {
    expect(reason("https://example.co.uk/", {})).to.equal(undefined);
    expect(reason("https://www.example.org/", {}, "http://example.org/")).to.equal(undefined);
    expect(reason("https://www.a.example.org/", {}, "http://a.example.org/")).to.equal(undefined);
    expect(reason("http://www.example.org:81/", {}, "http://example.org/")).to.be.a("string");
    expect(reason("https://github.io/", {}, "https://www.github.io/")).to.be.a("string");
    const options = { includeSubdomains: true };
    expect(reason("https://b.github.io/", options, "https://www.github.io/")).to.be.a("string");
  });

  it("crawlScope() includes subdomains of the start's host with includeSubdomains, not its siblings or parent", () => {
    const options = { includeSubdomains: true };
    const start = "https://docs.example.org/";
    for (const host of ["docs.example.org", "www.docs.example.org", "a.b.docs.example.org"]) {
      expect(reason(`https://${host}/`, options, start), host).to.equal(undefined);
    }
    for (const host of [
      "example.org",
      "www.example.org",
      "blog.example.org",
      "olddocs.example.org",
    ]) {
      expect(reason(`https://${host}/`, options, start), host).to.equal(
        `the host ${host} is no subdomain of docs.example.org`,
      );
    }
  });

  it("crawlScope() includes subdomains of the bare name if the start's host begins with www.", () => {
    const options = { includeSubdomains: true };
    for (const host of ["example.co.uk", "blog.example.co.uk", "a.b.example.co.uk"]) {
      expect(reason(`https://${host}/`, options), host).to.equal(undefined);
    }
    for (const host of ["other.co.uk", "co.uk", "notexample.co.uk", "www.example.co.uk:81"]) {
      expect(reason(`https://${host}/`, options), host).to.equal(
        `the host ${host} is no subdomain of www.example.co.uk`,
      );
    }
  });

  it("crawlScope() accepts hosts without a registrable domain", () => {
    const options = { includeSubdomains: true };
    expect(reason("http://a.localhost:81/", options, "http://localhost:81/")).to.equal(undefined);
    expect(reason("http://b.localhost/", options, "http://a.localhost/")).to.be.a("string");
    expect(reason("http://127.0.0.2/", options, "http://127.0.0.1/")).to.be.a("string");
    expect(reason("http://127.0.0.1/a", options, "http://127.0.0.1/")).to.equal(undefined);
    expect(reason("https://b.github.io/", options, "https://a.github.io/")).to.be.a("string");
  });

  it("crawlScope() includes every host with includeExternalLinks", () => {
    expect(reason("https://other.example/", { includeExternalLinks: true })).to.equal(undefined);
  });

  it("crawlScope() prefers exclude to include, and names the pattern", () => {
    const options = { includePatterns: ["/docs/**"], excludePatterns: ["**/private/**", "*.pdf"] };
    expect(reason("https://www.example.co.uk/docs/a", options)).to.equal(undefined);
    expect(reason("https://www.example.co.uk/docs/private/a", options)).to.equal(
      'excludePatterns has "**/private/**"',
    );
    expect(reason("https://www.example.co.uk/blog", options)).to.equal(
      "includePatterns has no pattern that matches",
    );
  });

  it("crawlScope() always includes the start URL, however it is written", () => {
    const options = { includePatterns: ["/docs/**"], excludePatterns: ["**"] };
    expect(reason(START, options)).to.equal(undefined);
    expect(reason("https://www.example.co.uk/%73tart", options)).to.equal(undefined);
  });

  it("crawlScope() with the most and longest patterns takes a bounded time", () => {
    const pattern = "**a".repeat(CRAWL_PATTERN_CHARS_MAX / 3);
    const patterns = Array.from({ length: CRAWL_PATTERNS_MAX }, (_, index) => pattern + index);
    const judge = crawlScope(START, { includePatterns: patterns, excludePatterns: patterns });
    const url = `https://www.example.co.uk/${"a".repeat(2_000)}`;
    const takenMs = processorTime();
    for (let round = 0; round < 10; round += 1) expect(judge(url).allowed).to.equal(false);
    expect(takenMs()).to.be.below(5_000);
  }).timeout(120_000);
});

function reason(url: string, options: ScopeOptions, start = START): string | undefined {
  const verdict = crawlScope(start, options)(url);
  return verdict.allowed ? undefined : verdict.reason;
}
