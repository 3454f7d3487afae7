import { expect } from "chai";
import { CRAWL_PATTERN_CHARS_MAX, CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { processorTime } from "../../../../scripts/testing/processor-time.ts";
import { SeededRandom } from "../../../../scripts/testing/seeded-random.ts";
import { urlPattern } from "./url-pattern.ts";
import { wildcardMatcher } from "./wildcard-matcher.ts";

describe("urlPattern", () => {
  const cases: [pattern: string, matched: string[], others: string[]][] = [
    [
      "https://x.example/docs/**",
      ["https://x.example/docs/", "https://x.example/docs/a/b?c=/d"],
      ["https://x.example/docs", "http://x.example/docs/a", "https://x.example/a/docs/b"],
    ],
    [
      "**/api/v1/*",
      ["https://x.example/api/v1/users", "https://x.example/a/b/api/v1/users?q=/1"],
      ["https://x.example/api/v1/users/7", "https://x.example/api/v2/users"],
    ],
    [
      "*/learning-paths/*",
      [
        "https://x.example/learning-paths/a",
        "https://x.example/en/learning-paths/a",
        "https://x.example/a/b/c/learning-paths/d?e",
      ],
      ["https://x.example/learning-paths/a/b"],
    ],
    [
      "x.example/docs/*",
      ["https://x.example/docs/a", "http://x.example/docs/a?b"],
      ["https://y.example/docs/a", "https://x.example:8080/docs/a", "https://x.example/docs/a/b"],
    ],
    [
      "/docs/*",
      ["https://x.example/docs/a", "https://x.example/a/docs/b"],
      ["https://x.example/docs"],
    ],
    ["docs/*", ["https://docs/a", "https://x.example/mydocs/a"], ["https://x.example/docs/a/b"]],
    ["*.example/**", ["https://x.example/", "https://x.y.example/a/b"], ["https://example/a"]],
    [
      "**.pdf",
      ["https://x.example/a/b.pdf", "https://x.example/b.pdf?v=1"],
      ["https://x.example/pdf"],
    ],
    ["*?sort=*", ["https://x.example/a?sort=up"], ["https://x.example/a?b&sort=up"]],
    ["*://x.example/*", ["http://x.example/a", "https://x.example/"], ["https://y.example/"]],
    ["HTTPS://X.Example/Docs", ["https://x.example/Docs"], ["https://x.example/docs"]],
    ["/café/%7e b/*", ["https://x.example/caf%c3%a9/~%20b/c"], ["https://x.example/cafe/~%20b/c"]],
    ["/a.b+c(d)[e]$", ["https://x.example/a.b+c(d)[e]$"], ["https://x.example/aXb+c(d)[e]$"]],
    ["**", ["https://x.example/"], []],
    ["\ud800\u0000", [], ["https://x.example/a"]],
  ];
  for (const [pattern, matched, others] of cases) {
    it(`urlPattern() of ${JSON.stringify(pattern)} matches the documented addresses`, () => {
      const matches = urlPattern(pattern);
      for (const url of matched) expect(matches(new URL(url).href), url).to.equal(true);
      for (const url of others) expect(matches(new URL(url).href), url).to.equal(false);
    });
  }
});

describe("wildcardMatcher", () => {
  it("wildcardMatcher() agrees with a naive matcher on random patterns and texts", () => {
    const seed = SeededRandom.newSeed();
    const random = new SeededRandom(seed);
    const word = (letters: string[], length: number) =>
      Array.from({ length: random.integer(0, length) }, () => random.pick(letters)).join("");
    let matched = 0;
    for (let round = 0; round < 20_000; round += 1) {
      const pattern = word(["a", "b", "/", "*", "**", "*"], 8);
      const text = word(["a", "a", "b", "/"], 8);
      const expected = naive(text, pattern);
      matched += expected ? 1 : 0;
      const told = `seed ${seed}: ${pattern} on ${text}`;
      expect(wildcardMatcher(pattern)(text), told).to.equal(expected);
    }
    expect(matched).to.be.above(1_000);
  });

  it("wildcardMatcher() matches across the end of a word of bits", () => {
    for (const length of [31, 32, 33, 63, 64, 65, 1_000]) {
      const text = "a".repeat(length);
      expect(wildcardMatcher(text)(text)).to.equal(true);
      expect(wildcardMatcher(`${text}*`)(`${text}b`)).to.equal(true);
      expect(wildcardMatcher(`${text}*`)(`${text}b/`)).to.equal(false);
      expect(wildcardMatcher(text)(`${text}a`)).to.equal(false);
      expect(wildcardMatcher(text)(text.slice(1))).to.equal(false);
    }
  });

  it("wildcardMatcher() takes a bounded time, whatever pattern and text", () => {
    const text = "a".repeat(CRAWL_URL_CHARS_MAX);
    const patterns = ["*a", "**a", "a*", "**a*a", "a"].map((part) =>
      part.repeat(CRAWL_PATTERN_CHARS_MAX / part.length).concat("b"),
    );
    const takenMs = processorTime();
    for (const pattern of patterns) expect(wildcardMatcher(pattern)(text)).to.equal(false);
    expect(takenMs()).to.be.below(1_000);
  }).timeout(120_000);
});

function naive(text: string, pattern: string): boolean {
  if (pattern === "") return text === "";
  if (pattern.startsWith("*")) {
    const any = pattern.startsWith("**");
    const rest = pattern.replace(any ? /^\*\*+/ : /^\*/, "");
    for (let length = 0; length <= text.length; length += 1) {
      if (naive(text.slice(length), rest)) return true;
      if (!any && text[length] === "/") return false;
    }
    return false;
  }
  return text !== "" && text[0] === pattern[0] && naive(text.slice(1), pattern.slice(1));
}
