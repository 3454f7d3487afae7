import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { RowNames } from "../../../actors/runtime/commit/stored-subjects.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { queueTask } from "../../../actors/runtime/tasks/queue-task.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { gitStorage } from "../../../schemas/repositories/git-storage.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { PACK_SWEEP } from "../../../schemas/repositories/pack-sweep.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { STREAMS, taskConsumer } from "../../../schemas/subjects.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";
import { compactPacks } from "./compact-packs.ts";
import { UPKEEP_WAITING_MAX, upkeepWorker } from "./upkeep-worker.ts";

const OTHER = "b".repeat(32);

describe("turns of accounts in upkeep", function () {
  this.timeout(180_000);
  let world: GitWorld;
  let gateway: GitGateway;
  /** The repositories that tasks have opened, in this order. */
  let opened: string[];
  /** Repositories whose manifests the tasks wait for. */
  let held: Set<string>;
  let sweeps: number;
  let letGo: () => void;
  beforeEach(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    [opened, held, sweeps] = [[], new Set(), 0];
    letGo = () => {};
  });
  afterEach(async () => {
    letGo();
    await world[Symbol.asyncDispose]();
  });

  /** Starts a worker whose tasks wait before they read a repository in `held`, until `letGo` is called. */
  async function startWorker(): Promise<void> {
    const { parts } = gateway.service;
    const { promise: released, resolve } = Promise.withResolvers<void>();
    letGo = resolve;
    const read: typeof parts.manifests.read = async (id, ...rest) => {
      opened.push(id);
      if (held.has(id)) await released;
      return await parts.manifests.read(id, ...rest);
    };
    const manifests = Object.assign(Object.create(parts.manifests), { read });
    const names = new RowNames(world.world.bus, { buckets: 1 });
    const rows = {
      list: (...given: Parameters<RowNames["list"]>) => {
        sweeps += 1;
        return names.list(...given);
      },
    };
    const blobs = new BlobStore(world.world.bus, systemClock);
    await world.world.worker([upkeepWorker({ ...parts, manifests }, { blobs, rows })]);
  }

  async function subscribe(accountId: string): Promise<void> {
    await world.actors.call(repoEvents, accountId, "subscribe", {
      id: "test",
      filter: { types: ["pushed"] },
      // No actor of this kind exists. The test reads the events from the account's list instead.
      subscriber: { kind: "nobody", key: "x" },
    });
  }

  async function queue(lane: string, key: string, message: string, input: unknown): Promise<void> {
    const task = { id: randomBytes(8).toString("hex"), from: "test", key, message, input };
    await queueTask(world.world.bus, { kind: gitUpkeep.kind, lane, inTurns: false }, task);
  }
  async function queueCompaction({ id, name }: TestRepo, accountId = ACCOUNT): Promise<void> {
    const address = { accountId, namespace: "tests", name };
    await queue("upkeep", id, "compact", { address, prune: false });
  }
  /** Returns the number of tasks that a worker has taken from the lane of compactions, and of those left there. */
  async function lane(): Promise<{ taken: number; left: number }> {
    const { jetstream } = world.world.bus;
    const consumer = taskConsumer(gitUpkeep.kind, "upkeep");
    const info = await jetstream.consumers.info(STREAMS.tasks, consumer);
    return { taken: info.num_ack_pending, left: info.num_pending };
  }

  it("many compactions of one account delay neither a compaction of another nor a sweep", async () => {
    const repos = [await world.repo(), await world.repo()] as const;
    const other = await world.repo({}, OTHER);
    held.add(repos[0].id);
    await startWorker();
    await queueCompaction(repos[0]);
    await until("the first compaction runs", () => opened.length > 0);
    for (let i = 0; i < UPKEEP_WAITING_MAX + 5; i++) await queueCompaction(repos[1]);
    await queueCompaction(other, OTHER);
    const { lane: sweep } = gitUpkeep.messages.sweep;
    await queue(sweep, PACK_SWEEP, "sweep", {});
    await until("the sweep runs", () => sweeps > 0, 30_000);
    // Besides the running compaction and that of the other account, the gateway keeps UPKEEP_WAITING_MAX tasks.
    await until("the lane is empty", async () => (await lane()).left === 0, 30_000);
    const isShared = async () => (await lane()).taken === UPKEEP_WAITING_MAX + 2;
    await until("the account has its share", isShared, 30_000);
    letGo();
    await until("all have ended", async () => (await lane()).taken === 0, 60_000);
    expect(opened.slice(0, 3)).to.deep.equal([repos[0].id, other.id, repos[1].id]);
    expect(opened).to.have.length(UPKEEP_WAITING_MAX + 2);
    expect(gateway.faults).to.deep.equal([]);
  });

  it("runs a sweep that an older version queued in the lane of compactions", async () => {
    await startWorker();
    await queue("upkeep", PACK_SWEEP, "sweep", {});
    await until("the sweep runs", () => sweeps > 0, 30_000);
  });

  it("a compaction without room for its packs is refused before git runs", async () => {
    const accountBytes = 4_000_000;
    const small = await world.gateway({ accountBytes: () => accountBytes });
    const repo = await world.repo();
    const work = await world.checkout();
    for (const file of ["a", "b"]) {
      await work.commit(randomBytes(600_000).toString("base64"), file);
      await work.git("push", "-q", small.remote(repo), "main");
    }
    const { parts } = small.service;
    let runs = 0;
    const enter: typeof parts.slots.enter = (...given) => {
      runs += 1;
      return parts.slots.enter(...given);
    };
    const slots = Object.assign(Object.create(parts.slots), { enter });
    const address = { accountId: ACCOUNT, namespace: "tests", name: repo.name };
    const call = world.actors.call.bind(world.actors);
    const context = { key: repo.id, signal: new AbortController().signal, call };
    const compact = () => compactPacks({ ...parts, slots }, address, { prune: false }, context);
    // Upkeep may take an account up to twice its limit.
    await world.actors.call(gitStorage, ACCOUNT, "add", { bytes: 2 * accountBytes });
    await until("the gateway knows", async () => {
      return (await parts.storage.freeBytes(ACCOUNT, context.signal)) < -accountBytes;
    });
    expect((await refusalOf(compact())).code).to.equal("storage_full");
    expect(runs).to.equal(0);
    await world.actors.send(gitStorage, ACCOUNT, "removed", { bytes: 2 * accountBytes });
    await until("the gateway knows", async () => {
      return (await parts.storage.freeBytes(ACCOUNT, context.signal)) > 0;
    });
    await compact();
    expect(runs).to.equal(1);
  });

  it("an account whose pushes take long to describe does not delay the events of another", async () => {
    const slow = await world.repo();
    const quick = await world.repo({}, OTHER);
    held.add(slow.id);
    await startWorker();
    for (const account of [ACCOUNT, OTHER]) await subscribe(account);
    for (let i = 0; i < 100; i++) {
      const after = randomBytes(20).toString("hex");
      const change = { ref: `refs/heads/b${i}`, before: ZERO_ID, after };
      const of = { repoId: slow.id, namespace: "tests", repoName: slow.name, at: Date.now() };
      const event = { ...of, type: "pushed" as const, refs: [change], refsTotal: 1, others: [] };
      await world.actors.send(repoEvents, ACCOUNT, "happened", { event });
    }
    await until("the first push is described", () => opened.length > 0);
    const work = await world.checkout();
    const head = await work.commit("quick");
    await work.git("push", "-q", gateway.remote(quick), "main");
    const described = async () => {
      const query = { after: 0, limit: 10 };
      const { events } = await world.actors.call(repoEvents, OTHER, "list", query);
      const pushed = events.find(({ event }) => event.type === "artifacts.repo.pushed");
      return pushed?.event.payload;
    };
    const payload = await until("the push of the other account is described", described, 50_000);
    expect(payload).to.deep.include({ after: head, totalCommitsCount: 1 });
    expect(opened).to.deep.equal([slow.id, quick.id]);
  });
});
