import { expect } from "chai";
import { freePort } from "../free-port.ts";
import { DoctorScene } from "../testing/doctor-scene.ts";

describe("admin doctor", function () {
  this.timeout(60_000);
  let scene: DoctorScene;
  beforeEach(async () => {
    scene = await DoctorScene.make();
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  it("prints a line for each finding, and how many there are", async () => {
    const environment = { TRUNKLINE_NATS_URL: `nats://127.0.0.1:${await freePort()}` };
    const { code, stdout } = await scene.run(["bus", "disk"], environment);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).to.match(
      /^failure {2}bus .* found .*connection refused; wanted .*; mend: start nats-server/,
    );
    expect(lines[1]).to.match(/^good {5}data folder {2}found /);
    expect(lines.at(-1)).to.match(/^1 failure, \d warnings?, \d good$/);
    expect(code).to.equal(2);
  });

  it("names the checks where one is unknown", async () => {
    const { code, stderr } = await scene.run(["bux"]);
    expect(code).to.equal(2);
    expect(stderr).to.match(/expected bus, streams, .*kernel, found "bux"/);
  });

  it("refuses a site that is no address of the web", async () => {
    const { code, stderr } = await scene.run(["--site", "example.com"]);
    expect(code).to.equal(2);
    expect(stderr).to.include('--site: expected an http:// or https:// URL, found "example.com"');
  });

  it("a wrong value of a setting stops service", async () => {
    const { level, found } = await scene.finding(["disk"], { TRUNKLINE_PORT: "abc" });
    expect(level).to.equal("failure");
    expect(found).to.include("TRUNKLINE_PORT: expected a whole number").and.include('"abc"');
  });

  it("a misspelled setting is a warning", async () => {
    const { level, found } = await scene.finding(["git"], { TRUNKLINE_PROT: "1" });
    expect({ level, found }).to.deep.equal({
      level: "warning",
      found: "TRUNKLINE_PROT is no setting and does nothing: is TRUNKLINE_PORT meant?",
    });
  });
});
