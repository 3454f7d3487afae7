import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { RowNames } from "../../../actors/runtime/commit/stored-subjects.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";
import { upkeepWorker } from "./upkeep-worker.ts";

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
      return events.at(-1)?.event.payload;
    };
    const payload = await until("the push of the other account is described", described, 50_000);
    expect(payload).to.deep.include({ after: head, totalCommitsCount: 1 });
    expect(opened).to.deep.equal([slow.id, quick.id]);
  });
});
