import { expect } from "chai";
import { meantName, nearestName } from "./nearest-name.ts";

describe("nearest-name", () => {
  const known = ["name", "agents", "artifacts", "compatibility_date"];

  it("nearestName() is the one that takes the fewest changes, whatever the case", () => {
    expect(nearestName("agent", known)).to.equal("agents");
    expect(nearestName("NAME", known)).to.equal("name");
    expect(nearestName("x", [])).to.equal("");
  });

  it("meantName() is a slip of the pen away: two characters, or a third of them", () => {
    expect(meantName("artefact", known)).to.equal("artifacts");
    expect(meantName("compatibilitydate", known)).to.equal("compatibility_date");
    expect(meantName("nameXY", known)).to.equal("name");
    expect(meantName("nameXYZ", known)).to.equal("");
    expect(meantName("queues", [])).to.equal("");
  });
});
