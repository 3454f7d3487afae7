import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { nkeyAccess } from "./bus-access.ts";
import { makeSeeds, seedFile } from "./seeds.ts";
import type { BusUserName } from "./users.ts";

describe("access to the bus by NKeys", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-access-"));
    await makeSeeds(folder);
  });
  after(() => rm(folder, { recursive: true }));

  const access = (path: string, ...names: BusUserName[]) =>
    nkeyAccess({ url: "nats://127.0.0.1:4222" }, path, names).then(
      (login) => names.map((name) => login(name).role),
      (error: Error) => error.message,
    );

  it("a folder has the user of each role, and a file that of one", async () => {
    expect(await access(folder, "gateway", "actors")).to.deep.equal(["gateway", "actors"]);
    expect(await access(seedFile(folder, "actors"), "actors")).to.deep.equal(["actors"]);
  });

  it("the seed of a role is refused for another role of the process", async () => {
    const file = seedFile(folder, "actors");
    for (const roles of [["gateway", "actors"], ["actors", "gateway"], ["gateway"]] as const) {
      expect(await access(file, ...roles)).to.equal(
        `TRUNKLINE_NATS_NKEYS: expected gateway.nk for the role gateway, or a folder with the seeds of ${roles.join(", ")}, found "${file}"`,
      );
    }
  });

  it("the user admin is taken for all roles, and any user for commands of people", async () => {
    const admin = ["admin", "admin"];
    expect(await access(seedFile(folder, "admin"), "gateway", "actors")).to.deep.equal(admin);
    expect(await access(seedFile(folder, "operator"), "admin")).to.deep.equal(["operator"]);
  });
});
