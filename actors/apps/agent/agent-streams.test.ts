import { expect } from "chai";
import { appKey } from "../../../schemas/apps/app-names.ts";
import { agentLogsOf } from "../../../schemas/split-streams.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { AGENT_LIMITS } from "../../../scripts/testing/agent-world.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { BlobStore } from "../../runtime/store/blob-store.ts";
import { appUsageActor } from "../app-usage/app-usage.ts";
import { AgentLogKeys } from "./agent-keys.ts";
import { AgentLog } from "./agent-log.ts";
import { AgentRoom } from "./agent-room.ts";
import { writersOf } from "./shared-writes.ts";

const ACCOUNTS = Array.from({ length: 12 }, (_, number) => number.toString(16).padStart(32, "a"));

describe("several streams of agents", function () {
  this.timeout(120_000);
  let world: World;
  before(async () => {
    world = await startWorld({ definitions: [appUsageActor], layout: { agentStreams: 4 } });
    await world.host();
  });
  after(() => world[Symbol.asyncDispose]());

  const appOf = (accountId: string) => appKey(accountId, "app");
  const open = (accountId: string) => {
    const key = `${appOf(accountId)}.A.one`;
    const room = new AgentRoom(world.client, AGENT_LIMITS, { key, accountId });
    const blobs = new BlobStore(world.bus, systemClock);
    const parts = { bus: world.bus, writesTo: writersOf(world.bus, systemClock), blobs };
    return AgentLog.open(parts, { key, app: appOf(accountId), room });
  };

  it("keep the logs of each account in one of them, where its next owner finds them", async () => {
    const record = (accountId: string) => ({
      ...{ commit: 2, record: Buffer.from(accountId), isImage: true, actions: [], arrived: 0 },
    });
    await Promise.all(
      ACCOUNTS.map(async (accountId) => (await open(accountId)).log.append(record(accountId))),
    );
    const used = new Set<string>();
    const keys = new AgentLogKeys(world.bus);
    for (const accountId of ACCOUNTS) {
      const { image } = await open(accountId);
      expect(Buffer.from(image ?? []).toString()).to.equal(accountId);
      expect(await keys.beneath(appOf(accountId))).to.deep.equal([`${appOf(accountId)}.A.one`]);
      expect(await keys.has(`${appOf(accountId)}.A.one`)).to.equal(true);
      const { stream, log } = agentLogsOf(world.bus.layout, appOf(accountId));
      expect(await world.count(stream, log(`${appOf(accountId)}.A.one`))).to.be.above(0);
      used.add(stream);
    }
    expect([...used]).to.have.members(["AGENTS", "AGENTS-1", "AGENTS-2", "AGENTS-3"]);
  });
});
