import { expect } from "chai";
import { CRAWL_URL_CHARS_MAX, ROBOTS_BYTES_MAX } from "../../../../schemas/crawl/limits.ts";
import { processorTime } from "../../../../scripts/testing/processor-time.ts";
import { parseRobots, ROBOTS_WILDCARDS_MAX } from "./parse-robots.ts";
import { matchesPathPattern } from "./path-pattern.ts";
import { robotsVerdict } from "./robots-verdict.ts";

describe("robotsVerdict", () => {
  it("robotsVerdict() names the line that decided", () => {
    const rules = ["3-/a", "5+/a/b", "9-/*.pdf$"];
    expect(verdict(rules, "/a/x")).to.deep.equal({
      allowed: false,
      rule: { line: 3, text: "Disallow: /a" },
    });
    expect(verdict(rules, "/a/b/x").rule).to.deep.equal({ line: 5, text: "Allow: /a/b" });
    expect(verdict(rules, "/a/b/x.pdf").rule?.line).to.equal(9);
    expect(verdict(rules, "/c")).to.deep.equal({ allowed: true });
  });

  it("robotsVerdict() lets Allow win a tie, and the first line among equals", () => {
    expect(verdict(["1-/a", "2+/a"], "/a").rule?.line).to.equal(2);
    expect(verdict(["1+/a", "2-/a"], "/a").rule?.line).to.equal(1);
    expect(verdict(["7-/*a", "8-/b*"], "/ba").rule?.line).to.equal(7);
  });

  it("robotsVerdict() looks at path and query, not at host and fragment", () => {
    const rules = ["1-/?q", "2-/p"];
    expect(verdict(rules, "?q=1").allowed).to.equal(false);
    expect(verdict(rules, "/#/p").allowed).to.equal(true);
    expect(robotsVerdict({ rules }, "https://p.example/p").allowed).to.equal(false);
    expect(robotsVerdict({ rules }, "https://p.example").allowed).to.equal(true);
  });

  it("robotsVerdict() compares percent-encoded bytes in any case of their digits", () => {
    expect(verdict(["1-/%C3%A9"], "/%c3%a9").allowed).to.equal(false);
    expect(verdict(["1-/a%20b"], "/a b").allowed).to.equal(false);
  });

  it("robotsVerdict() treats an encoded octet of an unreserved character as that character", () => {
    const pairs: [rule: string, path: string][] = [
      ["/private/", "/pri%76ate/y"],
      ["/pri%76ate/", "/private/y"],
      ["/~joe", "/%7Ejoe"],
      ["/%7Ejoe", "/~joe"],
      ["/%7ejoe", "/%7Ejoe"],
      ["/a-b_c.d9", "/%61%2d%62%5F%63%2e%64%39"],
      // Google's suite has it the other way (`%62`); RFC 9309, section 2.2.2, decides.
      ["/foo/bar/%62%61%7A", "/foo/bar/baz"],
    ];
    for (const [rule, path] of pairs) {
      const rules = rulesOf(`User-agent: *\nDisallow: ${rule}`);
      expect(verdict(rules, path).allowed, `${rule} on ${path}`).to.equal(false);
      // The form of an earlier version.
      expect(verdict([`2-${rule}`], path).allowed, `${rule} on ${path}`).to.equal(false);
    }
    const reserved: [rule: string, path: string][] = [
      ["/a%2Fb", "/a/b"],
      ["/a/b", "/a%2Fb"],
      ["/a%3Fb", "/a?b"],
    ];
    for (const [rule, path] of reserved) {
      expect(verdict(rulesOf(`User-agent: *\nDisallow: ${rule}`), path).allowed).to.equal(true);
    }
  });

  it("robotsVerdict() treats an encoded $ and * in a rule as the characters", () => {
    const cases: [rule: string, path: string, allowed: boolean][] = [
      ["/a%24", "/a$b", false],
      ["/a%24", "/a%24", false],
      ["/a%24", "/a", true],
      ["/a%2A", "/a*b", false],
      ["/a%2a", "/a%2A", false],
      ["/a%2A", "/axb", true],
      ["/a$b", "/a$b", false],
      ["/a$b", "/a%24bc", false],
      ["/a*$", "/a$b", false],
      ["/a$", "/a$", true],
      ["/*%24$", "/x$", false],
      ["/*%24$", "/x$y", true],
    ];
    for (const [rule, path, allowed] of cases) {
      const rules = rulesOf(`User-agent: *\nDisallow: ${rule}`);
      expect(verdict(rules, path).allowed, `${rule} on ${path}`).to.equal(allowed);
    }
  });

  it("robotsVerdict() always allows /robots.txt itself", () => {
    for (const rule of ["/", "/robots.txt", "/*.txt$"]) {
      expect(verdict([`1-${rule}`], "/robots.txt").allowed).to.equal(true);
      expect(verdict([`1-${rule}`], "/%72obots.txt").allowed).to.equal(true);
    }
    expect(verdict(["1-/"], "/a/robots.txt").allowed).to.equal(false);
    expect(verdict(["1-/"], "/robots.txt.bak").allowed).to.equal(false);
  });

  it("robotsVerdict() takes time proportional to rules and address", () => {
    const address = `/${"a".repeat(CRAWL_URL_CHARS_MAX)}`;
    const star = "*a".repeat(4_000);
    const stars = Array.from(
      { length: ROBOTS_WILDCARDS_MAX },
      (_, line) => `${line}-/*aaa${line}b`,
    );
    const long = "a".repeat(8_000);
    const longs = Array.from({ length: 60 }, (_, line) => `${line}-/*${long}${line}`);
    const many = Array.from({ length: 62 }, (_, line) => `${line}-/${star}b${line}`);
    const plain = Array.from({ length: ROBOTS_BYTES_MAX / 13 }, (_, line) => `${line}-/aa${line}`);
    const takenMs = processorTime();
    for (const rules of [stars, longs, many, plain]) {
      expect(verdict(rules, address)).to.deep.equal({ allowed: true });
    }
    expect(takenMs()).to.be.below(5_000);
  }).timeout(120_000);
});

describe("matchesPathPattern", () => {
  it("matchesPathPattern() agrees with a naive matcher on every short pattern and path", () => {
    const patterns = words(["a", "b", "*", "$"], 4);
    const paths = words(["a", "b", "$"], 4);
    for (const pattern of patterns) {
      for (const path of paths) {
        expect(matchesPathPattern(path, pattern), `${pattern} on ${path}`).to.equal(
          naive(path, pattern),
        );
      }
    }
  });

  it("matchesPathPattern() finds a piece whose beginning repeats within it", () => {
    expect(matchesPathPattern("/aabaabaaab", "/*aabaaab")).to.equal(true);
    expect(matchesPathPattern("/ababab", "/*abab$")).to.equal(true);
    expect(matchesPathPattern("/abab", "/ab*bab$")).to.equal(false);
  });
});

function verdict(rules: string[], path: string) {
  return robotsVerdict({ rules }, `https://a.example${path}`);
}

function rulesOf(text: string): string[] {
  const reader = { productToken: "TestBot", url: "https://a.example/robots.txt" };
  return parseRobots(new TextEncoder().encode(text), reader).rules;
}

function words(letters: string[], length: number): string[] {
  if (length === 0) return [""];
  const shorter = words(letters, length - 1);
  return [...new Set([...shorter, ...shorter.flatMap((word) => letters.map((l) => l + word))])];
}

/** Matches a pattern by trying every possibility. */
function naive(path: string, pattern: string): boolean {
  if (pattern === "") return true;
  if (pattern === "$") return path === "";
  if (pattern.startsWith("*")) {
    const rest = pattern.slice(1);
    return Array.from({ length: path.length + 1 }, (_, index) => path.slice(index)).some((tail) =>
      naive(tail, rest),
    );
  }
  return path !== "" && path[0] === pattern[0] && naive(path.slice(1), pattern.slice(1));
}
