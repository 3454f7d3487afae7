import { expect } from "chai";
import { processorTime } from "../../../scripts/testing/processor-time.ts";
import { compilePattern } from "./request-pattern.ts";

describe("compilePattern", () => {
  it("compilePattern() reads every spelling, and flags", () => {
    expect(compilePattern("/\\.css$/i").test("http://x/A.CSS")).to.equal(true);
    expect(compilePattern("/\\.css$/").test("http://x/A.CSS")).to.equal(false);
    expect(compilePattern("/^.*\\.(css)").test("http://x/a.css")).to.equal(true);
    expect(compilePattern("api/users").test("http://x/api/users/1")).to.equal(true);
    expect(compilePattern("/api/users").test("http://x/api/users/1")).to.equal(true);
    expect(compilePattern("(?<name>a)b").test("ab")).to.equal(true);
  });

  it("compilePattern() matches in linear time patterns that hang other engines", () => {
    const spent = processorTime();
    expect(compilePattern("^(a+)+$").test(`${"a".repeat(50_000)}!`)).to.equal(false);
    expect(spent()).to.be.below(10_000);
  });

  it("compilePattern() refuses invalid and too large patterns", () => {
    for (const pattern of ["(", "[", "a(?=b)", "(a)\\1", "(?<!a)b", "(a{70}){14}".repeat(9)]) {
      expect(() => compilePattern(pattern), pattern).to.throw(SyntaxError);
    }
  });
});
