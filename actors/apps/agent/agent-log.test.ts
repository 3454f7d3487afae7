import { expect } from "chai";
import { appKey } from "../../../schemas/apps/app-names.ts";
import { AGENT_RECORD_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { ACCOUNT, AGENT_LIMITS, keyOf } from "../../../scripts/testing/agent-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { BlobStore } from "../../runtime/store/blob-store.ts";
import { appUsageActor } from "../app-usage/app-usage.ts";
import { AgentLog, type NewRecord } from "./agent-log.ts";
import { AgentRoom } from "./agent-room.ts";
import { writersOf } from "./shared-writes.ts";

describe("AgentLog", function () {
  this.timeout(120_000);
  let world: World;
  before(async () => {
    world = await startWorld({ definitions: [appUsageActor] });
    await world.host();
  });
  after(() => world[Symbol.asyncDispose]());

  const opened = (name: string) => {
    const store = new BlobStore(world.bus, systemClock);
    const stored: string[] = [];
    const isThere = async (blob = "") => (await store.size(blob)) !== undefined;
    const blobs = {
      put(blob: string, bytes: Uint8Array) {
        stored.push(blob);
        return store.put(blob, bytes);
      },
      get: store.get.bind(store),
      remove: store.remove.bind(store),
    };
    const parts = { bus: world.bus, writesTo: writersOf(world.bus, systemClock), blobs };
    const key = keyOf("app", "A", name);
    const open = () => {
      const room = new AgentRoom(world.client, AGENT_LIMITS, { key, accountId: ACCOUNT });
      return AgentLog.open(parts as never, { key, app: appKey(ACCOUNT, "app"), room });
    };
    return { open, stored, isThere };
  };

  const record = (commit: number, more: Partial<NewRecord> = {}): NewRecord => ({
    ...{ commit, record: Buffer.from(`record ${commit}`), isImage: false, actions: [], arrived: 0 },
    ...more,
  });
  const largeActions = (commit: number) => {
    const frame = { text: "f".repeat(AGENT_RECORD_BYTES_MAX) };
    return [{ commit, to: { g: [{ to: [1], frame }] } }];
  };

  it("removes what an image supersedes, actions too, whoever stored it, and keeps everything that is needed", async () => {
    const { open, stored, isThere } = opened("superseded");
    const { log } = await open();
    await log.append(record(2, { actions: largeActions(2) }));
    const next = await open();
    expect(next.actions).to.deep.equal(largeActions(2));
    const image = { record: Buffer.alloc(AGENT_RECORD_BYTES_MAX + 1), isImage: true };
    await next.log.append(record(4, { ...image, actions: largeActions(2) }));
    await until("the first actions are removed", async () => !(await isThere(stored[0])));
    expect(stored).to.have.length(3);
    const third = await open();
    expect(third.image).to.have.length(AGENT_RECORD_BYTES_MAX + 1);
    expect(third.actions).to.deep.equal(largeActions(2));
    await third.log.append(record(6, { isImage: true }));
    for (const blob of stored) {
      await until("nothing is left", async () => !(await isThere(blob)));
    }
  });

  it("leaves nothing of a record that was refused", async () => {
    const { open, stored, isThere } = opened("refused");
    const { log } = await open();
    await open();
    const image = { record: Buffer.alloc(AGENT_RECORD_BYTES_MAX + 1), isImage: true };
    for (const wanted of [record(2, image), record(2, { actions: largeActions(2) })]) {
      const outcome = await log.append(wanted).catch((error: Error) => error.constructor.name);
      expect(outcome).to.equal("LogTaken");
    }
    expect(stored).to.have.length(2);
    for (const blob of stored) await until("it is removed", async () => !(await isThere(blob)));
  });
});
