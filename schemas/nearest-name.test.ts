import { expect } from "chai";
import { meantName, nearestName } from "./nearest-name.ts";

describe("nearest-name", () => {
  const known = ["name", "agents", "artifacts", "compatibility_date"];

  it("nearestName() returns the name with the fewest edits, in any case", () => {
    expect(nearestName("agent", known)).to.equal("agents");
    expect(nearestName("NAME", known)).to.equal("name");
    expect(nearestName("x", [])).to.equal("");
  });

  it("meantName() accepts typing errors: two characters, or a third of them", () => {
    expect(meantName("artefact", known)).to.equal("artifacts");
    expect(meantName("compatibilitydate", known)).to.equal("compatibility_date");
    expect(meantName("nameXY", known)).to.equal("name");
    expect(meantName("nameXYZ", known)).to.equal("");
    expect(meantName("queues", [])).to.equal("");
  });
});
