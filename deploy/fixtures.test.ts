import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { adminRestore } from "../scripts/admin/admin-restore.ts";
import { findLost, readExpected } from "../scripts/testing/data-fixture.ts";
import { startNats } from "../scripts/testing/nats-server.ts";
import { RoleProcess } from "../scripts/testing/role-process.ts";

const FIXTURES = join(import.meta.dirname, "fixtures");

describe("data of each released version", function () {
  this.timeout(120_000);

  for (const version of readdirSync(FIXTURES)) {
    it(`of ${version} opens in this version`, async () => {
      const path = join(FIXTURES, version);
      const folder = await mkdtemp(join(tmpdir(), "trunkline-fixture-"));
      await using nats = await startNats();
      await adminRestore([path], { TRUNKLINE_NATS_URL: nats.url }, () => {});
      {
        await using instance = await RoleProcess.start("opened", folder, {
          TRUNKLINE_ROLES: "gateway,actors",
          TRUNKLINE_NATS_URL: nats.url,
        });
        await instance.ready();
        expect(await findLost(instance.url, await readExpected(path))).to.deep.equal([]);
      }
      await rm(folder, { recursive: true, maxRetries: 10 });
    });
  }
});
