import { expect } from "chai";
import { printable, printableLines } from "./printable.ts";
import { table } from "./table.ts";

const STEERING = "\u0000\u0007\b\t\r\u001b]0;title\u0007\u007f\u009b2J\u2028\u202e\u2066";

describe("text that others wrote on a terminal", () => {
  it("printable() escapes what a terminal obeys, and nothing else", () => {
    expect(printable(`${STEERING}\n`)).to.equal(
      "\\u0000\\u0007\\u0008\\u0009\\u000d\\u001b]0;title\\u0007\\u007f\\u009b2J\\u2028\\u202e\\u2066\\u000a",
    );
    expect(printable('Zoë "日本" 🚂 \\')).to.equal('Zoë "日本" 🚂 \\');
  });

  it("printableLines() keeps the ends of lines", () => {
    expect(printableLines("a\u001b\nb\r\n")).to.equal("a\\u001b\nb\\u000d\n");
  });

  it("table() escapes its cells before it aligns them", () => {
    expect(table(["A", "B"], [["\u001b[2J\nx", "y"]])).to.equal(
      "A                 B\n\\u001b[2J\\u000ax  y",
    );
  });
});
