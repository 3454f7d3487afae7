import { expect } from "chai";
import { FAULT_CHARS_MAX, JSON_DEPTH_MAX } from "../../schemas/limits.ts";
import { refusal } from "../../scripts/testing/refusal.ts";
import { JSON_VALUES_MAX, readJson } from "./read-json.ts";

const read = (text: string) => readJson(Buffer.from(text));

describe("read-json", () => {
  it("readJson() reads what JSON.parse reads", () => {
    for (const text of [
      "null",
      "true",
      "-0.5e+10",
      '""',
      " \r\n\t[ ] ",
      "{}",
      '{ "a" : [ 1 , { "b" : [ ] , "c" : { } } , "\\u0041\\n\\"\\\\" ] , "d" : false }',
      "[[],[[]],{},[{}]]",
      '"€😀\u2028"',
      '{"constructor":1,"toString":2}',
      '{"a":{"b":1},"b":{"b":1}}',
    ]) {
      expect(read(text), text).to.deep.equal(JSON.parse(text));
    }
  });

  it("readJson() refuses what JSON.parse refuses, and says where", () => {
    const faults: [string, string][] = [
      ["", "expected a value at line 1, column 1 (position 0)"],
      ["nul", "expected a value at line 1, column 1 (position 0)"],
      ["{", "expected a field's name in double quotes at line 1, column 2 (position 1)"],
      ['{"a"}', 'expected ":" at line 1, column 5 (position 4)'],
      ['{"a":}', "expected a value at line 1, column 6 (position 5)"],
      ['{"a":1,}', "expected a field's name in double quotes at line 1, column 8 (position 7)"],
      ['{\n "a": 1\n "b": 2}', 'expected "," or "}" at line 3, column 2 (position 11)'],
      ["{a:1}", "expected a field's name in double quotes at line 1, column 2 (position 1)"],
      ["[1,]", "expected a value at line 1, column 4 (position 3)"],
      ["[1", 'expected "," or "]" at line 1, column 3 (position 2)'],
      ["[,1]", "expected a value at line 1, column 2 (position 1)"],
      ["[1}", 'expected "," or "]" at line 1, column 3 (position 2)'],
      ["01", "expected the end at line 1, column 2 (position 1)"],
      ["1.", "expected the end at line 1, column 2 (position 1)"],
      ["{} {}", "expected the end at line 1, column 4 (position 3)"],
      ["]", "expected a value at line 1, column 1 (position 0)"],
      ['"a', "expected the rest of a string at line 1, column 3 (position 2)"],
      ['"\\x"', "expected the rest of a string at line 1, column 2 (position 1)"],
      ['"\\u12g4"', "expected the rest of a string at line 1, column 2 (position 1)"],
      ['"a\nb"', "expected the rest of a string at line 1, column 3 (position 2)"],
      ["'a'", "expected a value at line 1, column 1 (position 0)"],
      ["NaN", "expected a value at line 1, column 1 (position 0)"],
      ["\ufeffx", "expected a value at line 1, column 1 (position 0)"],
    ];
    for (const [text, what] of faults) {
      expect(() => JSON.parse(text), text).to.throw(SyntaxError);
      const { code, message } = refusal(() => read(text));
      expect(code).to.equal("invalid_request");
      expect(message).to.equal(`Cannot accept body: ${what}`);
    }
  });

  it("readJson() refuses a field given twice, however it is spelled", () => {
    for (const text of ['{"a":1,"a":1}', '[{"b":{"a":1,"x":{},"\\u0061":2}}]']) {
      expect(refusal(() => read(text)).message, text).to.contain('the field "a" is given twice');
    }
  });

  it("readJson() refuses __proto__, however it is spelled", () => {
    for (const text of ['{"__proto__":{"admin":true}}', '[{"_\\u005fproto__":1}]']) {
      expect(refusal(() => read(text)).message, text).to.contain('cannot be named "__proto__"');
    }
    expect(({} as Record<string, unknown>).admin).to.equal(undefined);
  });

  it("readJson() reads nested levels up to the limit and refuses one more", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect(read(nested(JSON_DEPTH_MAX))).to.be.an("array");
    expect(refusal(() => read(nested(JSON_DEPTH_MAX + 1))).message).to.contain("levels of nesting");
    expect(refusal(() => read(nested(1_000_000))).message).to.contain("levels of nesting");
  });

  it("readJson() reads fields and items up to the limit and refuses one more", () => {
    const items = (count: number) => JSON.stringify(new Array(count).fill(0));
    const fields = (count: number) =>
      JSON.stringify({ a: Object.fromEntries(Array.from({ length: count }, (_, i) => [i, ""])) });
    expect(read(items(JSON_VALUES_MAX))).to.have.length(JSON_VALUES_MAX);
    expect(read(fields(JSON_VALUES_MAX - 1))).to.have.keys("a");
    for (const text of [items(JSON_VALUES_MAX + 1), fields(JSON_VALUES_MAX)]) {
      const { code, message } = refusal(() => read(text));
      expect(code).to.equal("invalid_request");
      expect(message).to.contain(`expected at most ${JSON_VALUES_MAX} fields and array items at`);
    }
  });

  it("readJson() reads millions of names as fast as one text of the same size", function () {
    // Creating these names takes seconds on a busy machine.
    this.timeout(60_000);
    const names: string[] = [];
    for (let i = 0; i < 4_500_000; i++) names.push(`"${i.toString(36)}":0`);
    const many = Buffer.from(`{${names.join(",")}}`);
    const one = Buffer.from(JSON.stringify({ html: "x".repeat(many.length) }));
    readJson(one);
    // Other programs on this processor can slow down a single measurement. So both are measured several times,
    // alternately.
    const rounds = Array.from({ length: 3 }, () => ({
      text: cpuMs(() => readJson(one)),
      refused: cpuMs(() => refusal(() => readJson(many))),
    }));
    const text = Math.max(...rounds.map((round) => round.text));
    const refused = Math.min(...rounds.map((round) => round.refused));
    expect(refused, `one text takes ${text} ms`).to.be.below(3 * text + 20);
  });

  it("readJson() truncates a long name in its error, and locates an error in the last of many lines", () => {
    const name = "n".repeat(FAULT_CHARS_MAX + 1);
    const { message } = refusal(() => read(`{"${name}":1,"${name}":2}`));
    expect(message).to.contain("given twice").and.to.contain("…");
    expect(message.length).to.be.below(FAULT_CHARS_MAX + 100);
    const lines = refusal(() => read(`${"\n".repeat(1_000_000)}x`));
    expect(lines.message).to.contain("at line 1000001, column 1 (position 1000000)");
  });

  it("readJson() refuses bytes that are not UTF-8", () => {
    const bytes = Uint8Array.of(0x22, 0xff, 0x22);
    expect(refusal(() => readJson(bytes)).message).to.contain("not UTF-8");
  });

  it("readJson() agrees with JSON.parse on random texts", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = randomOf(seed);
    const pieces = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"a"',
      '"b"',
      "1",
      "-",
      "0",
      ".",
      "e",
      "null",
      " ",
    ];
    for (let i = 0; i < 20_000; i++) {
      const length = 1 + Math.floor(random() * 8);
      const text = Array.from({ length }, () => pieces[Math.floor(random() * pieces.length)]).join(
        "",
      );
      expect(
        outcome(() => read(text)),
        `seed ${seed}: ${text}`,
      ).to.deep.equal(outcome(() => JSON.parse(text), text));
    }
  });
});

function cpuMs(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Returns the parsed value or the error. The two parsers may differ only for a field that is given twice. */
function outcome(run: () => unknown, text = ""): unknown {
  try {
    const value = run();
    return hasTwice(text) ? "refused" : { value };
  } catch {
    return "refused";
  }
}

/** Returns whether an object has a field twice. This is correct only for the test's texts of at most eight pieces. */
function hasTwice(text: string): boolean {
  return /"(a|b)" *:[^{}]*,[^{}]*"\1" *:/.test(text);
}

function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
