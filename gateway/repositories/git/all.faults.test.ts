import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { gitStorage } from "../../../schemas/repositories/git-storage.ts";
import { PACK_SWEEP, packSweep } from "../../../schemas/repositories/pack-sweep.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { until } from "../../../scripts/testing/until.ts";
import { GitNode } from "../testing/git-node.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  GitWorld,
  type TestRepo,
} from "../testing/git-world.ts";
import { expectFile, namedBy, storedIn, uploadFile } from "../testing/kept.ts";
import { compactPacks } from "../upkeep/compact-packs.ts";

/**
 * As in production, the grace period is longer than a hold plus the time that a push may wait for its decision. While
 * a killed host is being replaced, no repository can name the held packs.
 */
const TIMES = { heldMs: 5_000, graceMs: 20_000, everyMs: 250 };
const FAULTS_MS = 35_000;
const FAULTS = ["gateway", "host", "git", "bus", "cache"] as const;
const REPOS = 2;
const PUSHERS = 2;

/** The known state of a branch that only one pusher moves, always together with a second branch. */
interface Own {
  branch: string;
  heads: string[];
  /** The index in `heads` of the last acknowledged push. */
  acknowledged: number;
}

interface Known {
  repo: TestRepo;
  /** The commits that won the race for the main branch, each with its parent. */
  won: { head: string; parent: string }[];
  own: Own[];
  files: string[];
}

describe("git under all faults at once", function () {
  this.timeout(1_800_000);
  let world: GitWorld;
  let random: SeededRandom;
  let nodes: GitNode[] = [];
  let known: Known[];
  let isOver: boolean;
  let acknowledged: number;
  const faults = new Map<string, number>();

  before(async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    random = new SeededRandom(seed);
    world = await GitWorld.start({ sweepTimes: TIMES, hosted: false });
    const { url } = world.world;
    nodes = ["one", "two"].map((name) => {
      const dataDir = join(world.folder, name);
      return new GitNode({ url, name, dataDir, sweepTimes: TIMES, random: random.fork() });
    });
    isOver = false;
    acknowledged = 0;
    await world.actors.send(packSweep, PACK_SWEEP, "begin", {});
    const isAnswered = () =>
      world.actors.call(gitStorage, ACCOUNT, "get", {}).then(
        () => true,
        () => false, // No host is there yet.
      );
    await until("actors answer", isAnswered, 120_000);
    known = await Promise.all(Array.from({ length: REPOS }, begun));
  });
  after(async () => {
    isOver = true;
    for (const node of nodes) await node[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  async function begun(): Promise<Known> {
    const repo = await world.repo();
    const work = await world.checkout();
    const head = await work.commit("first");
    // Most gateways kill themselves during their first push, and each restart takes some time.
    await until(
      "a first push gets in",
      async () => {
        const remote = await random.pick(nodes).remote(repo);
        return (await work.tryGit("push", "-q", remote, "main")).code === 0;
      },
      120_000,
    );
    const own = Array.from({ length: PUSHERS }, (_, number) => {
      return { branch: `own-${number}`, heads: [], acknowledged: -1 };
    });
    return { repo, own, won: [{ head, parent: "" }], files: [] };
  }

  /**
   * Pushes until the test ends: competes for the main branch, moves two branches in one push, and stores large files.
   */
  async function push({ repo, won, files }: Known, own: Own, choices: SeededRandom) {
    const work = await world.checkout();
    for (let round = 0; !isOver; round++) {
      const node = choices.pick(nodes);
      const remote = await node.remote(repo);
      const content = `${own.branch} ${round}`;
      if (choices.chance(0.1)) {
        const oid = await uploadFile(await node.url(), repo).catch(() => undefined);
        if (oid !== undefined) files.push(oid);
      } else if (choices.chance(0.5)) {
        if ((await work.tryGit("fetch", "-q", remote, "main")).code !== 0) continue;
        const parent = await work.git("rev-parse", "FETCH_HEAD");
        await work.git("reset", "-q", "--hard", parent);
        const head = await work.commit(content, `file-${choices.integer(0, 9)}`);
        const { code } = await work.tryGit("push", "-q", remote, "main");
        if (code !== 0) continue;
        won.push({ head, parent });
        acknowledged += 1;
      } else {
        const head = await work.commit(content, own.branch);
        own.heads.push(head);
        const both = [
          `+${head}:refs/heads/${own.branch}`,
          `+${head}:refs/heads/twin-${own.branch}`,
        ];
        const { code } = await work.tryGit("push", "-q", "--atomic", remote, ...both);
        if (code !== 0) continue;
        own.acknowledged = own.heads.length - 1;
        acknowledged += 1;
      }
    }
  }

  /** Compacts packs without a pause, sometimes with a prune of unreachable objects. */
  async function compact({ service }: GitGateway, choices: SeededRandom): Promise<void> {
    const call = world.actors.call.bind(world.actors);
    while (!isOver) {
      const { id, name } = choices.pick(known).repo;
      const address = { accountId: ACCOUNT, namespace: "tests", name };
      const context = { key: id, signal: AbortSignal.timeout(60_000), call };
      // The compaction may fail, because other gateways push and compact at the same time and all nodes may be down.
      await compactPacks(service.parts, address, { prune: choices.chance(0.5) }, context).catch(
        () => {},
      );
    }
  }

  /** Asserts that every read is complete and not older than the pushes that were acknowledged before the read. */
  async function read(choices: SeededRandom): Promise<void> {
    while (!isOver) {
      const one = choices.pick(known);
      await seen(one, await choices.pick(nodes).remote(one.repo));
    }
  }

  /**
   * Reads the repository and asserts that its content is complete and not too old. Returns why it cannot be read, or
   * undefined after a successful read.
   */
  async function seen({ won, own }: Known, remote: string): Promise<string | undefined> {
    const winners = won.map(({ head }) => head);
    const least = own.map(({ acknowledged }) => acknowledged);
    const copy = await world.checkout();
    const fetched = await copy.tryGit("fetch", "-q", remote, "+refs/heads/*:refs/x/*");
    if (fetched.code !== 0) return fetched.stderr;
    await copy.git("fsck", "--full", "--strict");
    const history = new Set((await copy.git("rev-list", "refs/x/main")).split("\n"));
    expect([...history]).to.include.members(winners);
    for (const [number, { branch, heads }] of own.entries()) {
      const value = await tipOf(copy, branch);
      expect(await tipOf(copy, `twin-${branch}`), "half of a push").to.equal(value);
      const place = value === "" ? -1 : heads.indexOf(value);
      expect(place, branch).to.be.at.least(least[number] ?? -1);
    }
    await rm(copy.folder, { recursive: true, force: true });
    return undefined;
  }

  const tipOf = async (copy: Checkout, branch: string) =>
    (await copy.tryGit("rev-parse", "--verify", "-q", `refs/x/${branch}`)).stdout.trim();

  /** Causes all kinds of faults equally often, in random order and with random pauses. */
  async function breakThings(choices: SeededRandom): Promise<void> {
    const endsAt = performance.now() + FAULTS_MS;
    let left: (typeof FAULTS)[number][] = [];
    // Continues on a slow machine until each kind of fault has occurred and enough pushes were acknowledged.
    const isEnough = () => faults.size === FAULTS.length && acknowledged >= FAULTS.length;
    while (performance.now() < endsAt || !isEnough()) {
      // Mostly waits for a push, so that the work makes progress. Otherwise the next fault comes before any progress.
      if (choices.chance(0.6)) await pushed();
      const pausesTo = performance.now() + choices.integer(0, 1_000);
      await until("its time", () => performance.now() >= pausesTo);
      if (left.length === 0) left = [...FAULTS];
      const fault = choices.pick(left);
      left = left.filter((other) => other !== fault);
      await strike(fault, choices.pick(nodes));
      faults.set(fault, (faults.get(fault) ?? 0) + 1);
    }
  }

  async function pushed(): Promise<void> {
    const before = acknowledged;
    await until("a push is acknowledged", () => acknowledged > before, 120_000);
  }

  async function strike(fault: (typeof FAULTS)[number], node: GitNode): Promise<void> {
    switch (fault) {
      case "gateway":
        return node.killGateway();
      case "host": {
        // Waits for a push, so that only the host's journal contains it when the host is killed.
        await pushed();
        return node.killHost();
      }
      case "git":
        await until("there is a git", () => nodes.some((one) => one.killGit()), 120_000);
        return;
      case "bus": {
        const { nats } = world.world;
        if (!nats) throw new Error("no server");
        await nats.kill();
        return await nats.start();
      }
      case "cache":
        return await node.wipeCache();
      default:
        fault satisfies never;
    }
  }

  /** Checks all repositories through a new gateway with an empty cache. */
  async function check(): Promise<void> {
    const fresh = await world.gateway();
    for (const one of known) {
      let why: string | undefined;
      const isRead = async () => {
        why = await seen(one, fresh.remote(one.repo));
        return why === undefined;
      };
      await until("it can be read", isRead, 60_000).catch((cause: unknown) => {
        throw new Error(`Cannot read: ${why}`, { cause });
      });
      for (const oid of one.files) await expectFile(fresh.url, one.repo, oid);
      const parents = one.won.map(({ parent }) => parent);
      expect(new Set(parents).size, "two won one race").to.equal(parents.length);
      // Reads the named packs before the stored ones. In the other order, a pack that is stored and named between the
      // two reads would look missing.
      const names = await namedBy(world, one.repo);
      expect(await storedIn(world)).to.include.members(names);
    }
    await fresh.stop();
  }

  it("keeps acknowledged pushes, shows no partial push, and leaves no processes or files behind", async () => {
    const compacting = await world.gateway({ packsHeldMs: TIMES.heldMs });
    const work = known.flatMap((one) => one.own.map((own) => push(one, own, random.fork())));
    const others = [compact(compacting, random.fork()), read(random.fork())];
    // The first failure of any of these rejects, and ends the test.
    await Promise.race([breakThings(random.fork()), Promise.all([...work, ...others])]);
    isOver = true;
    await Promise.all([...work, ...others]);
    for (const node of nodes) node.calm();
    const raced = known.reduce((sum, { won }) => sum + won.length, 0);
    const done = { acknowledged, raced, files: known.flatMap(({ files }) => files).length };
    const own = known.flatMap((one) => one.own.map(({ heads }) => heads.length));
    console.log(`      ${JSON.stringify({ ...Object.fromEntries(faults), ...done, own })}`);
    await check();
    await until(
      "no orphan is left",
      async () => {
        const names = await Promise.all(known.map(({ repo }) => namedBy(world, repo)));
        return new Set(await storedIn(world)).isSubsetOf(new Set(names.flat()));
      },
      150_000,
    );
    await check();
    expect(acknowledged).to.be.at.least(FAULTS.length);
  });
});
