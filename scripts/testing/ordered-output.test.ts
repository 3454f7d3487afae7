import { expect } from "chai";
import { OrderedOutput } from "./ordered-output.ts";

describe("OrderedOutput", () => {
  let printed: string;
  let output: OrderedOutput;
  beforeEach(() => {
    printed = "";
    output = new OrderedOutput((text) => {
      printed += text;
    });
  });

  it("write() prints the first file as it comes and holds the others back", () => {
    const [first, second] = [output.open(), output.open()];
    second.write("b1 ");
    first.write("a1 ");
    expect(printed).to.equal("a1 ");
    first.write("a2 ");
    first.end();
    expect(printed).to.equal("a1 a2 b1 ");
    second.write("b2 ");
    expect(printed).to.equal("a1 a2 b1 b2 ");
  });

  it("end() prints files that ended meanwhile before the next one that still runs", () => {
    const [first, second, third] = [output.open(), output.open(), output.open()];
    second.write("b1 ");
    third.write("c ");
    third.end();
    first.end();
    expect(printed).to.equal("c b1 ");
    second.write("b2 ");
    expect(printed).to.equal("c b1 b2 ");
  });
});
