/**
 * Starts whole instances with other numbers of shards and streams than the default. Each role has its own bus
 * user.
 */
import { mkdtemp, readFile, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { STORE_DISK_SHARE } from "../schemas/store-limits.ts";
import { trunkline } from "../scripts/testing/command-line.ts";
import { RoleProcess } from "../scripts/testing/role-process.ts";
import { until } from "../scripts/testing/until.ts";

const ROLES = { TRUNKLINE_ROLES: "gateway,actors" };
const CHOSEN = {
  TRUNKLINE_SHARDS: "16",
  TRUNKLINE_STATE_STREAMS: "4",
  TRUNKLINE_MAIL_STREAMS: "2",
  TRUNKLINE_TASK_STREAMS: "4",
  TRUNKLINE_AGENT_STREAMS: "2",
  TRUNKLINE_PACK_STREAMS: "4",
  TRUNKLINE_AGENTS_BYTES: "400000000",
};

describe("an instance with other numbers of shards and streams", function () {
  this.timeout(900_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-layout-"));
  });
  after(() => rm(folder, { recursive: true, maxRetries: 10 }));

  const start = (environment: Record<string, string>) =>
    RoleProcess.start("data", folder, { ...ROLES, ...environment });
  const stop = async (instance: RoleProcess) => {
    instance.signal("SIGTERM");
    await instance.exit();
  };

  it("works with the rights of its roles, keeps the numbers, and refuses others", async () => {
    await using first = await start(CHOSEN);
    await first.ready();
    const { account_id: account, api_token: token } = await first.credentials();
    const headers = { authorization: `Bearer ${token}` };
    const create = async (instance: RoleProcess, name: string) => {
      const url = `${instance.url}/v4/accounts/${account}/tokens`;
      const policies = [{ effect: "allow", permission_groups: [{ id: "artifacts.read" }] }];
      const body = JSON.stringify({ name, policies });
      const type = { "content-type": "application/json" };
      return await fetch(url, { method: "POST", headers: { ...headers, ...type }, body });
    };
    const created = await create(first, "one");
    expect(created.status, await created.text()).to.equal(200);
    const url = (await readFile(join(folder, "data", "nats.url"), "utf8")).trim();
    const system = (await readFile(join(folder, "data", "nats.system.url"), "utf8")).trim();
    const bus = await Bus.connect({ url: system, name: "test" });
    const { data } = (await bus.request("$SYS.REQ.SERVER.PING.JSZ", "")).json<{
      data: { config: { max_storage: number } };
    }>();
    await bus.close();
    // Streams may grow at a restart by what they already store, so the limit is a share of the whole disk.
    const { bsize, blocks } = await statfs(folder);
    expect(data.config.max_storage).to.equal(Math.floor(bsize * blocks * STORE_DISK_SHARE));
    // A host that stood still for longer than its lease has no shards for a moment.
    const areOwned = async () =>
      /\n16 of 16 shards have an owner\n$/.test((await trunkline(["admin", "shards"], url)).stdout);
    await until("all 16 shards have an owner", areOwned, 120_000);
    const usage = await fetch(`${first.url}/v4/accounts/${account}/agents/usage`, { headers });
    // An account may fill a quarter of one of the two streams.
    expect(await usage.text()).to.include('"stored_bytes_limit":50000000');
    expect(first.lines.join("\n")).to.not.include("Violation");
    await stop(first);

    await using other = await start({ TRUNKLINE_SHARDS: "64" });
    expect(await other.exit()).to.equal(1);
    const text = other.lines.join("\n");
    expect(text).to.include("TRUNKLINE_SHARDS: expected 16, as the first start stored it");
    expect(text).to.include('found "64"');

    await using unset = await start({});
    await unset.ready();
    const listed = await fetch(`${unset.url}/v4/accounts/${account}/tokens`, { headers });
    expect(await listed.text()).to.include('"one"');
    expect(unset.lines.join("\n")).to.not.include("Violation");
    await stop(unset);
  });
});
