/** Starts this version on the data folder of an earlier version, which has no users of the bus. */
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { expect } from "chai";
import { readBusAddress } from "../../actors/runtime/bus/bus-address.ts";
import { runCommand } from "../testing/command-line.ts";
import { type Credentials, RoleProcess } from "../testing/role-process.ts";
import { REPOSITORY } from "../tools.ts";
import { BUS_USERS } from "./users.ts";

describe("users of an embedded bus", function () {
  this.timeout(240_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-embedded-"));
  });
  after(() => rm(folder, { recursive: true, maxRetries: 10 }));

  const start = async () => {
    const instance = await RoleProcess.start("data", folder, { TRUNKLINE_ROLES: "gateway,actors" });
    await instance.ready();
    return instance;
  };
  const stop = async (instance: RoleProcess) => {
    instance.signal("SIGTERM");
    await instance.exit();
    await instance[Symbol.asyncDispose]();
  };
  const tokensOf = (gateway: RoleProcess, { account_id: account, api_token: token }: Credentials) =>
    fetch(`${gateway.url}/v4/accounts/${account}/tokens`, {
      headers: { authorization: `Bearer ${token}` },
    });
  const read = (name: string) => readFile(join(folder, "data", name), "utf8");

  it("are made at the next start, and the data and its address stay", async () => {
    const first = await start();
    const credentials = await first.credentials();
    const url = await read("nats.url");
    await stop(first);
    // Removes the folder of seeds, because an earlier version did not create it.
    await rm(join(folder, "data/bus"), { recursive: true });
    const second = await start();
    expect((await tokensOf(second, credentials)).status).to.equal(200);
    expect(await read("nats.url")).to.equal(url);
    for (const user of BUS_USERS) {
      const { mode } = await stat(join(folder, "data/bus", `${user}.nk`));
      expect(mode & 0o777).to.equal(0o600);
    }
    const seed = await read("bus/actors.nk");
    await stop(second);
    const third = await start();
    expect(await read("bus/actors.nk")).to.equal(seed);
    expect((await readdir(join(folder, "data/bus"))).length).to.equal(BUS_USERS.length + 2);
    // The address in nats.url still gives people all permissions.
    const person = await connect(readBusAddress((await read("nats.url")).trim()));
    expect((await person.request("$JS.API.INFO")).string()).to.include("streams");
    await person.close();
    const main = join(REPOSITORY, "scripts/trunkline.ts");
    const doctor = await runCommand(process.execPath, [main, "admin", "doctor", "bus"], {
      TRUNKLINE_DATA: join(folder, "data"),
      TRUNKLINE_ROLES: "gateway,actors",
    });
    expect(doctor.code, doctor.stdout).to.equal(0);
    expect(doctor.stdout).to.match(/good +permissions of gateway/);
    expect(doctor.stdout).to.not.include("users of the bus");
    await stop(third);
  });
});
