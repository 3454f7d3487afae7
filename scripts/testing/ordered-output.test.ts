import { expect } from "chai";
import { OrderedOutput } from "./ordered-output.ts";

describe("OrderedOutput", () => {
  let printed: string[];
  let output: OrderedOutput;
  beforeEach(() => {
    printed = [];
    output = new OrderedOutput((text) => void printed.push(text));
  });
  /** Returns the text printed since the last call. */
  const news = () => printed.splice(0).join("");

  it("write() prints the first file live and buffers the others", () => {
    const [first, second] = [output.open("a"), output.open("b")];
    second.write("b1 ");
    first.write("a1 ");
    first.write("a2 ");
    expect(news()).to.equal("a\na1 a2 ");
    first.end();
    expect(news()).to.equal("b\nb1 ");
    second.write("b2 ");
    second.end();
    expect(news()).to.equal("b2 ");
  });

  it("end() prints another file in one piece, and names the first one where it continues", () => {
    const [first, second, third] = [output.open("a"), output.open("b"), output.open("c")];
    first.write("a1 ");
    third.write("c1 ");
    second.write("b1 ");
    third.write("c2 ");
    expect(news()).to.equal("a\na1 ");
    third.end();
    expect(news()).to.equal("c\nc1 c2 ");
    first.write("a2 ");
    expect(news()).to.equal("a goes on\na2 ");
    first.end();
    expect(news()).to.equal("b\nb1 ");
  });
});
