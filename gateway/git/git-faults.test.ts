import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { ChildProgram } from "../../scripts/testing/child-program.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import { until } from "../../scripts/testing/until.ts";
import { type Checkout, GitWorld, type TestRepo } from "./testing/git-world.ts";

const MAIN = join(import.meta.dirname, "testing", "git-gateway-main.ts");
const STEPS = ["before-store", "after-store", "before-swap", "during-swap", "after-swap", "any"];

describe("git under faults", function () {
  this.timeout(120_000);
  let world: GitWorld;
  before(async () => {
    world = await GitWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  /** What a clone sees through a gateway that has nothing yet. */
  async function freshClone(repo: TestRepo): Promise<Checkout> {
    const gateway = await world.gateway();
    const copy = await world.checkout();
    await copy.git("fetch", "-q", gateway.remote(repo), "+refs/heads/*:refs/heads/x/*");
    await copy.git("fsck", "--full", "--strict");
    expect(gateway.faults).to.deep.equal([]);
    return copy;
  }

  it("of two gateways that race for a branch one wins each time, whether they share a cache or not", async () => {
    const one = await world.gateway();
    const gateways = [one, await world.gateway({ dataDir: one.dataDir }), await world.gateway()];
    const repo = await world.repo();
    const works = await Promise.all(gateways.map(() => world.checkout()));
    let wins = 0;
    for (let round = 0; round < 4; round++) {
      const raced = await Promise.all(
        works.map(async (work, i) => {
          const gateway = gateways[i];
          if (!gateway) throw new Error("no gateway");
          if (round > 0) {
            await work.git("fetch", "-q", gateway.remote(repo), "main");
            await work.git("reset", "-q", "--hard", "FETCH_HEAD");
          }
          const head = await work.commit(`${round} ${i}`);
          const { code } = await work.tryGit("push", gateway.remote(repo), "main");
          return code === 0 ? head : undefined;
        }),
      );
      const won = raced.filter((head) => head !== undefined);
      // At once or one after the other: who comes late has not fetched the winner's commit.
      expect(won).to.have.length(1);
      wins += won.length;
      const there = await works[0]?.git("ls-remote", one.remote(repo), "main");
      expect(there).to.contain(won[0]);
    }
    const copy = await freshClone(repo);
    expect(await copy.git("rev-list", "--count", "x/main")).to.equal(String(wins));
    for (const { faults } of gateways) expect(faults).to.deep.equal([]);
  });

  it("many pushers to branches of one repository all get in", async () => {
    const gateway = await world.gateway();
    const other = await world.gateway({ dataDir: gateway.dataDir });
    const repo = await world.repo();
    const pushers = Array.from({ length: 6 }, async (_, i) => {
      const work = await world.checkout();
      for (let round = 0; round < 3; round++) {
        await work.commit(`${i} ${round}`);
        const through = round % 2 ? gateway : other;
        await work.git("push", "-q", through.remote(repo), `main:branch-${i}`);
      }
    });
    await Promise.all(pushers);
    const copy = await freshClone(repo);
    for (let i = 0; i < 6; i++) {
      expect(await copy.git("rev-list", "--count", `x/branch-${i}`)).to.equal("3");
    }
  });

  it("keeps every push that was acknowledged, wherever gateways are killed, and shows none by half", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    const repo = await world.repo();
    const work = await world.checkout();
    const dataDir = await mkdtemp(join(world.folder, "killed-"));
    let [acknowledged, tip] = ["", ""];
    for (let round = 0; round < 14; round++) {
      const step = random.pick(STEPS);
      if (random.chance(0.3)) await rm(dataDir, { recursive: true, force: true });
      await using gateway = new ChildProgram(
        [process.execPath, MAIN, world.world.url, dataDir, step],
        {},
      );
      const [, port] = (await gateway.line("listening")).split(" ");
      const remote = `http://x:${repo.token}@127.0.0.1:${port}${repo.path}`;
      const head = await work.commit(`round ${round}`, `file-${random.integer(0, 4)}`);
      const pushing = work.tryGit("push", remote, "+main:main");
      if (step === "any") {
        const wait = random.integer(0, 120);
        const startedAt = performance.now();
        await until("its time", () => performance.now() - startedAt >= wait);
        gateway.signal("SIGKILL");
      }
      const { code } = await pushing;
      if (step !== "any") expect(code, step).to.not.equal(0);
      if (code === 0) acknowledged = head;
      const copy = await freshClone(repo);
      tip = (await copy.tryGit("rev-parse", "--verify", "-q", "x/main")).stdout.trim();
      if (step.startsWith("before")) expect(tip).to.not.equal(head);
      if (step === "after-swap") expect(tip).to.equal(head);
      if (acknowledged) await copy.git("merge-base", "--is-ancestor", acknowledged, tip);
    }
    const gateway = await world.gateway({ dataDir });
    await work.git("push", "-q", gateway.remote(repo), "main");
    expect(await work.git("rev-parse", "main")).to.equal(
      (await work.git("ls-remote", gateway.remote(repo), "main")).slice(0, 40),
    );
    await gateway.service.sweep();
  });

  it("keeps every push that was acknowledged when the bus is killed under it, and goes on when it is back", async () => {
    const { nats } = world.world;
    if (!nats) throw new Error("no server");
    const gateway = await world.gateway();
    const repo = await world.repo();
    const work = await world.checkout();
    let acknowledged = "";
    for (let round = 0; round < 3; round++) {
      const head = await work.commit(`round ${round}`);
      const pushing = work.tryGit("push", gateway.remote(repo), "+main:main");
      const startedAt = performance.now();
      await until("its time", () => performance.now() - startedAt >= 15 * (round + 1));
      await nats.kill();
      await nats.start();
      if ((await pushing).code === 0) acknowledged = head;
      const there = await until(
        "the bus is back",
        async () => {
          const listed = await work.tryGit("ls-remote", gateway.remote(repo), "main");
          return listed.code === 0 && { tip: listed.stdout.slice(0, 40) };
        },
        30_000,
      );
      if (acknowledged) await work.git("merge-base", "--is-ancestor", acknowledged, there.tip);
    }
    await work.git("push", "-q", gateway.remote(repo), "+main:main");
    const copy = await freshClone(repo);
    expect(await copy.git("rev-parse", "x/main")).to.equal(await work.git("rev-parse", "main"));
  });
});
