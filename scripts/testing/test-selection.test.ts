import { expect } from "chai";
import { allTestFiles, selectTests, suiteOf } from "./test-selection.ts";

describe("selectTests", () => {
  it("selectTests() without words selects every file of the suite, and each file is in one suite", () => {
    const quick = selectTests("quick", []);
    const faults = selectTests("faults", []);
    expect(quick.files).to.include("scripts/testing/test-selection.test.ts");
    expect(faults.files).to.include("deploy/platform.faults.test.ts");
    expect([...quick.files, ...faults.files].sort()).to.deep.equal(allTestFiles());
  });

  it("suiteOf() reads the suite from the name's last part alone", () => {
    expect(suiteOf("deploy/crawl/crawl.faults.test.ts")).to.equal("faults");
    expect(suiteOf("actors/crawl/crawl-job/faults.test.ts")).to.equal("quick");
    expect(suiteOf("deploy/crawl.faults-more.test.ts")).to.equal("quick");
  });

  it("selectTests() selects a file that exists, of either suite", () => {
    const file = "deploy/platform.faults.test.ts";
    expect(selectTests("quick", [file])).to.deep.equal({ files: [file] });
  });

  it("selectTests() selects files of the suite by a part of their path, each once", () => {
    const { files, grep } = selectTests("quick", ["schemas/", "schemas/crawl/http"]);
    expect(files).to.include("schemas/subjects.test.ts");
    expect(new Set(files).size).to.equal(files.length);
    expect(files.every((file) => file.startsWith("schemas/"))).to.equal(true);
    expect(grep).to.equal(undefined);
  });

  it("selectTests() selects tests by name, with the describe before it or without", () => {
    const file = "scripts/testing/test-selection.test.ts";
    for (const name of [
      "reads the suite from the name's last part",
      "selectTests suiteOf() reads the suite from the name's last part alone",
    ]) {
      const { files, grep = "" } = selectTests("quick", [name]);
      expect(files, name).to.include(file);
      expect(new RegExp(grep).test(name)).to.equal(true);
    }
  });

  it("selectTests() treats the characters of a name literally", () => {
    const { grep = "" } = selectTests("quick", ["suiteOf() reads (a+)+"]);
    expect(new RegExp(grep).test("suiteOf() reads (a+)+")).to.equal(true);
    expect(new RegExp(grep).test("suiteOf reads aa")).to.equal(false);
  });

  it("selectTests() selects nothing where nothing matches", () => {
    const word = ["no", "such", "test"].join("-");
    expect(selectTests("quick", [word]).files).to.deep.equal([]);
  });
});
