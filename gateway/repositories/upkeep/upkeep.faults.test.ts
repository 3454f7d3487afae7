import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import { UPKEEP_RETRY_MS } from "../../../actors/repositories/repo/repo-upkeep.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { RowNames } from "../../../actors/runtime/commit/stored-subjects.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { lfsBlob } from "../../../schemas/repositories/lfs.ts";
import { COMPACT_PACKS } from "../../../schemas/repositories/limits.ts";
import { PACK_SWEEP, packSweep } from "../../../schemas/repositories/pack-sweep.ts";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { LfsBlobs } from "../lfs/lfs-store.ts";
import type { PackBlobs } from "../packs/pack-store.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  GitWorld,
  type TestRepo,
} from "../testing/git-world.ts";
import { expectFile, namedBy, storedIn, uploadFile } from "../testing/kept.ts";
import { upkeepWorker } from "./upkeep-worker.ts";

/**
 * Times short enough for a test. As in production, the grace period exceeds the hold plus the time that a push may
 * wait for its decision.
 */
const TIMES = { heldMs: 3_000, graceMs: 15_000, everyMs: 500 };
const REPACKING = ["before-put", "during-put", "before-compact", "during-compact", "after-compact"];
const SWEEPING = [
  "during-condemn",
  "after-condemn",
  "before-removeUpTo",
  "during-removeUpTo",
  "before-removed",
  "during-removed",
];

describe("upkeep when the bus is killed under it", function () {
  this.timeout(2_400_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let random: SeededRandom;
  /** The step at which the bus is killed next; empty after the bus was killed. */
  let armed = "";
  let dying = Promise.resolve();
  const acknowledged: { repo: TestRepo; head: string; branch: string }[] = [];
  const files: { repo: TestRepo; oid: string }[] = [];

  beforeEach(async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    random = new SeededRandom(seed);
    world = await GitWorld.start({ sweepTimes: TIMES });
    const blobs = new BlobStore(world.world.bus, systemClock);
    gateway = await world.gateway({ packsHeldMs: TIMES.heldMs, blobs: killing(blobs) });
    const rows = new RowNames(world.world.bus, { buckets: 1 });
    const swept = {
      names: blobs.names.bind(blobs),
      size: blobs.size.bind(blobs),
      lastSequence: blobs.lastSequence.bind(blobs),
      removeUpTo: at("removeUpTo", blobs.removeUpTo.bind(blobs)),
    };
    const { contract, ...worker } = upkeepWorker(gateway.service.parts, { blobs: swept, rows });
    const { compact, sweep, describe: describing } = worker.handlers;
    const handlers: typeof worker.handlers = {
      describe: describing,
      compact: (input, context) => compact(input, { ...context, call: asked(context.call) }),
      sweep: (input, context) => sweep(input, { ...context, call: asked(context.call) }),
    };
    await world.world.worker([defineWorker(contract, { ...worker, handlers })]);
    await world.actors.send(packSweep, PACK_SWEEP, "begin", {});
  });
  afterEach(async () => {
    armed = "";
    await dying;
    acknowledged.length = 0;
    files.length = 0;
    await world[Symbol.asyncDispose]();
  });

  async function killAndStart(): Promise<void> {
    const { nats } = world.world;
    if (!nats) throw new Error("no server");
    await nats.kill();
    await nats.start();
  }

  function endAt(step: string): void {
    if (step !== armed) return;
    armed = "";
    dying = killAndStart();
  }

  function at<A extends unknown[], R>(name: string, inner: (...given: A) => Promise<R>) {
    return async (...given: A): Promise<R> => {
      endAt(`before-${name}`);
      const answered = inner(...given);
      endAt(`during-${name}`);
      const reply = await answered;
      endAt(`after-${name}`);
      return reply;
    };
  }

  const killing = (blobs: BlobStore): PackBlobs & LfsBlobs => ({
    get: blobs.get.bind(blobs),
    part: blobs.part.bind(blobs),
    isWhole: blobs.isWhole.bind(blobs),
    streamUse: blobs.streamUse.bind(blobs),
    put: at("put", blobs.put.bind(blobs)),
  });

  function asked(call: ActorClient["call"]): ActorClient["call"] {
    return async (contract, key, message, ...rest) => {
      endAt(`before-${message}`);
      const answered = call(contract, key, message, ...rest);
      endAt(`during-${message}`);
      const reply = await answered;
      endAt(`after-${message}`);
      return reply;
    };
  }

  /** Pushes with retries, because the bus may be unreachable. Records the pushes that git acknowledged. */
  async function push(repo: TestRepo, work: Checkout, branch: string, head: string): Promise<void> {
    await until(
      "the push gets in",
      async () => {
        const { code } = await work.tryGit("push", "-q", gateway.remote(repo), `+main:${branch}`);
        return code === 0;
      },
      60_000,
    );
    acknowledged.push({ repo, branch, head });
  }

  async function upload(repo: TestRepo): Promise<void> {
    // Without the bus the upload may be refused before it was sent completely.
    const oid = await uploadFile(gateway.url, repo).catch(() => undefined);
    if (oid !== undefined) files.push({ repo, oid });
  }

  const named = (repo: TestRepo) => namedBy(world, repo);
  const stored = () => storedIn(world);

  /** Asserts that no object is lost or broken, and that no unreferenced object remains. */
  async function check(...repos: TestRepo[]): Promise<void> {
    expect(armed, "the step was never reached").to.equal("");
    await dying;
    for (const repo of repos) {
      const fresh = await world.gateway();
      const copy = await world.checkout();
      const isRead = async () => {
        const remote = fresh.remote(repo);
        return (await copy.tryGit("fetch", "-q", remote, "+refs/*:refs/x/*")).code === 0;
      };
      await until("it can be read", isRead, 60_000);
      await copy.git("fsck", "--full", "--strict");
      const latest = new Map(
        acknowledged.filter((push) => push.repo === repo).map((push) => [push.branch, push.head]),
      );
      for (const [branch, head] of latest) {
        expect(await copy.git("rev-parse", `refs/x/heads/${branch}`), branch).to.equal(head);
      }
      for (const { oid } of files.filter((file) => file.repo === repo)) {
        await expectFile(fresh.url, repo, oid);
      }
      const names = await named(repo);
      expect(await stored()).to.include.members(names);
    }
    // For some seconds the bus still shows a removed row, and its pack counts as named.
    await until(
      "no orphan is left",
      async () => {
        const names = new Set((await Promise.all(repos.map(named))).flat());
        return (await stored()).every((name) => names.has(name));
      },
      240_000,
    );
    for (const repo of repos) {
      const copy = await world.checkout();
      const fresh = await world.gateway();
      await copy.git("fetch", "-q", fresh.remote(repo), "+refs/*:refs/x/*");
      await copy.git("fsck", "--full", "--strict");
    }
  }

  it("compaction loses no object and leaves no orphan", async () => {
    const repo = await world.repo();
    const work = await world.checkout();
    await upload(repo);
    for (let i = 1; i < COMPACT_PACKS; i++) {
      await push(repo, work, "main", await work.commit(`c${i}`, `file-${i % 7}`));
    }
    const step = random.pick(REPACKING);
    // The push stores its own pack before the compaction stores a pack. A step of `put` is therefore set only after
    // the push.
    if (!step.endsWith("-put")) armed = step;
    await push(repo, work, "main", await work.commit("last"));
    if (step.endsWith("-put")) armed = step;
    await until("it is killed", () => armed === "", 30_000).catch(() => {
      // If the compaction ended before the step was set, the bus is killed when the next object is stored.
    });
    await push(repo, work, "side", await work.commit("meanwhile"));
    await upload(repo);
    await until("few packs", async () => (await named(repo)).length < COMPACT_PACKS, 120_000);
    await check(repo);
  });

  it("pruning keeps objects that a ref reaches, and drops the others", async () => {
    // Each round prunes another repository, because a repository is pruned once in PRUNE_INTERVAL_MS.
    const repos: TestRepo[] = [];
    for (let round = 0; round < 3; round++) {
      const repo = await world.repo();
      repos.push(repo);
      const work = await world.checkout();
      await upload(repo);
      await push(repo, work, "main", await work.commit("kept"));
      await push(repo, work, "side", await work.commit(`secret ${round}`, "secret.txt"));
      const secret = await work.git("rev-parse", "HEAD");
      await work.git("reset", "-q", "--hard", "HEAD~1");
      await push(repo, work, "side", await work.commit(`side ${round}`, `s-${round}`));
      armed = random.pick(REPACKING);
      await world.actors.call(repoContract, repo.id, "prune", {});
      // If a compaction of another repository still runs, the prune waits for its end.
      await until("it is killed", () => armed === "", UPKEEP_RETRY_MS + 60_000);
      await push(repo, work, "main", await work.commit(`main ${round}`));
      await until(
        "the secret is gone",
        async () => {
          const other = await world.checkout();
          const { code } = await other.tryGit("fetch", "-q", gateway.remote(repo), secret);
          const { code: reads } = await other.tryGit("ls-remote", gateway.remote(repo));
          return code !== 0 && reads === 0;
        },
        150_000,
      );
    }
    await check(...repos);
  });

  it("a sweep removes no pack that a repository names, and eventually all others", async () => {
    const repo = await world.repo();
    const work = await world.checkout();
    await push(repo, work, "main", await work.commit("first"));
    for (let round = 0; round < 2; round++) {
      // Stores objects that no repository names, as an upload and a push do whose processes die. Each object is
      // stored only once.
      await dying;
      const content = randomBytes(600_000);
      const oid = createHash("sha256").update(content).digest("hex");
      const blobs = new BlobStore(world.world.bus, systemClock);
      await blobs.put(lfsBlob(ACCOUNT, oid), content);
      await blobs.put(`git.${ACCOUNT}.${oid}`, content);
      await upload(repo);
      await push(repo, work, "main", await work.commit(`round ${round}`));
      armed = random.pick(SWEEPING);
      await until("it is killed", () => armed === "", 150_000);
      await push(repo, work, "main", await work.commit(`after ${round}`));
    }
    await check(repo);
    expect((await stored()).some((name) => name.startsWith("lfs."))).to.equal(true);
    await world.actors.call(repoContract, repo.id, "remove", {});
    await until(
      "all of a removed repository is gone",
      async () => (await stored()).length === 0,
      240_000,
    );
  });
});
