import { expect } from "chai";
import { appKey } from "../../../schemas/apps/app-names.ts";
import { appUsage } from "../../../schemas/apps/app-usage.ts";
import { AGENT_RECORD_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { agentLogsOf } from "../../../schemas/split-streams.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { ACCOUNT, AGENT_LIMITS, keyOf } from "../../../scripts/testing/agent-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../../runtime/bus/bus.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { BlobStore } from "../../runtime/store/blob-store.ts";
import { appUsageActor } from "../app-usage/app-usage.ts";
import { AgentLog, type NewRecord } from "./agent-log.ts";
import { AgentRoom } from "./agent-room.ts";
import { writersOf } from "./shared-writes.ts";

interface Opening {
  blankLogS?: number;
  bus?: Bus;
  client?: Pick<ActorClient, "call">;
}

describe("AgentLog", function () {
  this.timeout(120_000);
  let world: World;
  before(async () => {
    world = await startWorld({ definitions: [appUsageActor] });
    await world.host();
  });
  after(() => world[Symbol.asyncDispose]());

  const opened = (
    name: string,
    { blankLogS, bus = world.bus, client = world.client }: Opening = {},
  ) => {
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
    const parts = { bus, writesTo: writersOf(bus, systemClock), blobs, blankLogS };
    const key = keyOf("app", "A", name);
    const open = () => {
      const room = new AgentRoom(client, AGENT_LIMITS, { key, accountId: ACCOUNT });
      return AgentLog.open(parts as never, { key, app: appKey(ACCOUNT, "app"), room });
    };
    const { stream, log: subjectOf } = agentLogsOf(world.bus.layout, key);
    const last = () => world.bus.readLast(stream, subjectOf(key));
    return { open, stored, isThere, last };
  };
  const usage = async () => {
    const { agents, bytes } = await world.client.call(appUsage, ACCOUNT, "get", {});
    return { agents, bytes };
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
    await log.append(record(2));
    await open();
    const image = { record: Buffer.alloc(AGENT_RECORD_BYTES_MAX + 1), isImage: true };
    for (const wanted of [record(3, image), record(3, { actions: largeActions(3) })]) {
      const outcome = await log.append(wanted).catch((error: Error) => error.constructor.name);
      expect(outcome).to.equal("LogTaken");
    }
    expect(stored).to.have.length(2);
    for (const blob of stored) await until("it is removed", async () => !(await isThere(blob)));
  });

  describe("of an agent that stores nothing", () => {
    const refusal = (appended: Promise<void>) =>
      appended.then(
        () => "stored",
        (error: Error) => error.constructor.name,
      );

    it("leave() removes it, also when many open together, and no former owner can write then", async () => {
      const names = Array.from({ length: 20 }, (_, at) => `addressed-${at}`);
      const logs = names.map((name) => opened(name));
      const former = await Promise.all(logs.map(({ open }) => open()));
      const present = await Promise.all(logs.map(({ open }) => open()));
      for (const { last } of logs)
        expect((await last())?.header.get("Nats-TTL")).to.equal("86400s");
      await Promise.all(present.map(({ log }) => log.leave()));
      for (const { last } of logs) expect(await last()).to.equal(undefined);
      const outcomes = await Promise.all(former.map(({ log }) => refusal(log.append(record(2)))));
      expect([...new Set(outcomes)]).to.deep.equal(["LogTaken"]);
      const numbers = await Promise.all(logs.map(async ({ open }) => (await open()).lastCommit));
      for (const [at, { lastCommit }] of present.entries()) {
        expect(numbers[at]).to.be.greaterThan(lastCommit);
      }
    });

    it("leave() keeps a log with data, and removes one that an earlier version opened", async () => {
      const stores = opened("stores");
      const { log } = await stores.open();
      await log.append(record(2));
      await log.leave();
      const again = await stores.open();
      expect(again.records.map(String)).to.deep.equal(["record 2"]);
      await again.log.leave();
      expect((await stores.last())?.header.get("Nats-TTL")).to.equal("");

      const early = opened("early");
      const { stream, log: subjectOf } = agentLogsOf(world.bus.layout, keyOf("app", "A", "early"));
      const headers = { "Trunkline-Commit": "1", "Trunkline-Arrived": "0", "Trunkline-Room": "0" };
      const write = { subject: subjectOf(keyOf("app", "A", "early")), payload: "", headers };
      await writersOf(world.bus, systemClock)(stream).write(write);
      expect(await early.last()).not.to.equal(undefined);
      await (await early.open()).log.leave();
      await until("it is removed", async () => (await early.last()) === undefined);
    });

    it("expires after its owner was killed, and not before while the owner lives", async () => {
      const bus = await Bus.connect({ url: world.url, name: "killed" });
      const killed = opened("killed", { blankLogS: 30, bus });
      await killed.open();
      const lives = opened("lives", { blankLogS: 30 });
      const owner = await lives.open();
      expect(await killed.last()).not.to.equal(undefined);
      await bus.close();
      await until(
        "the log of the killed owner is gone",
        async () => (await killed.last()) === undefined,
        90_000,
      );
      await owner.log.append(record(2));
      expect((await lives.open()).records.map(String)).to.deep.equal(["record 2"]);
    });

    it("keeps the data of an owner of an earlier version, which takes over a record that expires", async () => {
      const bus = await Bus.connect({ url: world.url, name: "upgraded" });
      const { open } = opened("mixed", { blankLogS: 2, bus });
      await open();
      await bus.close();
      const { stream, log } = agentLogsOf(world.bus.layout, keyOf("app", "A", "mixed"));
      const subject = log(keyOf("app", "A", "mixed"));
      const writes = writersOf(world.bus, systemClock)(stream);
      const headers = { "Trunkline-Arrived": "0", "Trunkline-Room": "0" };
      const write = (commit: string, payload: string) =>
        writes.write({ subject, payload, headers: { ...headers, "Trunkline-Commit": commit } });
      const takeover = await write("2", "");
      await write("3", "record 3");
      await until("the first record has expired", async () => {
        return (await world.bus.readNext(stream, subject, 1))?.seq === takeover;
      });
      const { records, lastCommit } = await opened("mixed").open();
      expect(records.map(String)).to.deep.equal(["record 3"]);
      expect(lastCommit).to.equal(4);
    });

    it("empty() and leave() remove its data and end its count, at once or after the next takeover", async () => {
      const before = await usage();
      const emptied = opened("emptied");
      const first = await emptied.open();
      await first.log.append(record(first.lastCommit + 1));
      expect((await usage()).agents).to.equal(before.agents + 1);
      await first.log.empty(first.lastCommit + 2);
      await first.log.leave();
      expect(await emptied.last()).to.equal(undefined);
      expect(await usage()).to.deep.equal(before);
      const second = await emptied.open();
      expect(second.records).to.deep.equal([]);
      expect(second.lastCommit).to.be.greaterThan(first.lastCommit + 2);
      await second.log.append(record(second.lastCommit + 1));

      // The host is killed after it has emptied the log, and before the account has ended the count.
      let isKilled = false;
      const client: Pick<ActorClient, "call"> = {
        call: (...asked) =>
          isKilled ? Promise.reject(new Error("killed")) : world.client.call(...asked),
      };
      const third = await opened("emptied", { client }).open();
      isKilled = true;
      expect(await refusal(third.log.empty(third.lastCommit + 1))).to.equal("Error");
      await third.log.leave();
      expect((await emptied.last())?.data.length).to.equal(0);
      expect((await usage()).agents).to.equal(before.agents + 1);
      const next = await emptied.open();
      expect(next.records).to.deep.equal([]);
      await next.log.empty(next.lastCommit + 1);
      await next.log.leave();
      expect(await emptied.last()).to.equal(undefined);
      expect(await usage()).to.deep.equal(before);
    });

    it("states a reservation before the account makes it, so the owner after a killed one ends the count", async () => {
      const before = await usage();
      const client: Pick<ActorClient, "call"> = {
        async call(...asked) {
          await world.client.call(...asked);
          throw new Error("killed");
        },
      };
      const killed = await opened("reserved", { client }).open();
      expect(await refusal(killed.log.append(record(killed.lastCommit + 1)))).to.equal("Error");
      const { open, last } = opened("reserved", { blankLogS: 10 });
      expect((await last())?.header.get("Nats-TTL")).to.equal("");
      expect((await usage()).agents).to.equal(before.agents + 1);
      const next = await open();
      // The owner renews no record of such a log: the renewed one would expire, and would state no reservation.
      const other = opened("renewed", { blankLogS: 10 });
      await other.open();
      const first = await other.last();
      await until("another is renewed", async () => (await other.last())?.seq !== first?.seq);
      expect((await last())?.header.get("Nats-TTL")).to.equal("");
      await next.log.empty(next.lastCommit + 1);
      await next.log.leave();
      expect(await last()).to.equal(undefined);
      expect(await usage()).to.deep.equal(before);
    });

    it("leaves nothing if the account refuses the first reservation", async () => {
      const client = {
        call: () => Promise.reject(new ActorError("limit_reached", "Cannot create the agent")),
      };
      const { open, last } = opened("too-many", { client });
      const { log, lastCommit } = await open();
      expect(await refusal(log.append(record(lastCommit + 1)))).to.equal("ActorError");
      await log.leave();
      expect(await last()).to.equal(undefined);
    });

    it("empty() by a former owner changes nothing", async () => {
      const taken = opened("taken");
      const former = await taken.open();
      await former.log.append(record(2));
      const present = await taken.open();
      expect(await refusal(former.log.empty(3))).to.equal("LogTaken");
      await former.log.leave();
      await present.log.append(record(4));
      const { records } = await taken.open();
      expect(records.map(String)).to.deep.equal(["record 2", "record 4"]);
    });
  });
});
