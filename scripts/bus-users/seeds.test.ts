import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { makeSeeds, readSeed, seedFile } from "./seeds.ts";
import { BUS_USERS } from "./users.ts";

describe("seeds", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-seeds-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("makeSeeds() makes files for their owner alone, and nothing beside them", async () => {
    expect((await makeSeeds(folder)).made).to.deep.equal(BUS_USERS);
    expect((await readdir(folder)).sort()).to.deep.equal(
      BUS_USERS.map((name) => `${name}.nk`).sort(),
    );
    for (const name of BUS_USERS) {
      expect((await stat(seedFile(folder, name))).mode & 0o777).to.equal(0o600);
    }
  });

  it("makeSeeds() keeps the seeds that are there", async () => {
    const { publicKeys } = await makeSeeds(folder);
    await rm(seedFile(folder, "actors"));
    const again = await makeSeeds(folder);
    expect(again.made).to.deep.equal(["actors"]);
    expect(again.publicKeys.actors).not.to.equal(publicKeys.actors);
    expect(again.publicKeys.gateway).to.equal(publicKeys.gateway);
  });

  it("a temporary file that is empty or half written does not disturb", async () => {
    const path = seedFile(folder, "actors");
    await writeFile(`${path}.unfinished`, "");
    await writeFile(`${path}.0.unfinished`, "SUA");
    expect((await makeSeeds(folder)).made).to.deep.equal(BUS_USERS);
    expect(await readSeed(path)).to.match(/^SU/);
    expect(await readFile(`${path}.0.unfinished`, "utf8")).to.equal("SUA");
  });
});
