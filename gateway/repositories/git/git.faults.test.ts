import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { ChildProgram } from "../../../scripts/testing/child-program.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { until } from "../../../scripts/testing/until.ts";
import { type Checkout, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";

const MAIN = join(import.meta.dirname, "../testing/git-gateway-main.ts");
const HOST = join(import.meta.dirname, "../testing/git-host-main.ts");
const STEPS = ["before-store", "after-store", "before-swap", "during-swap", "after-swap", "any"];

describe("git under faults", function () {
  this.timeout(900_000);
  let world: GitWorld;
  before(async () => {
    world = await GitWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  /** Clones through a gateway with an empty cache. */
  async function freshClone(repo: TestRepo): Promise<Checkout> {
    const gateway = await world.gateway();
    const copy = await world.checkout();
    await copy.git("fetch", "-q", gateway.remote(repo), "+refs/heads/*:refs/heads/x/*");
    await copy.git("fsck", "--full", "--strict");
    expect(gateway.faults).to.deep.equal([]);
    return copy;
  }

  /**
   * Resolves when the next push reaches a step: its pack is stored, `swap` is sent to the repository, or the
   * repository has decided. For the step `any`, resolves after `waitMs`.
   */
  function stepOf({ service }: GitGateway, step: string, waitMs: number): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { packs, actors } = service.parts;
    if (step === "any") {
      const startedAt = performance.now();
      return until("its time", () => performance.now() - startedAt >= waitMs);
    }
    if (step === "stored") {
      const put = packs.put;
      packs.put = async (...given) => {
        packs.put = put;
        const stored = await put.apply(packs, given);
        resolve();
        return stored;
      };
      return promise;
    }
    const call = actors.call.bind(actors);
    actors.call = async (contract, key, message, ...rest) => {
      const answered = call(contract, key, message, ...rest);
      if (message !== "swap") return await answered;
      actors.call = call;
      if (step === "asked") resolve();
      const reply = await answered;
      resolve();
      return reply;
    };
    return promise;
  }

  it("when two gateways race for a branch, exactly one wins, whether they share a cache or not", async () => {
    const one = await world.gateway();
    const gateways = [one, await world.gateway({ dataDir: one.dataDir }), await world.gateway()];
    const repo = await world.repo();
    const works = await Promise.all(gateways.map(() => world.checkout()));
    let wins = 0;
    const remoteOf = (i: number) => gateways[i]?.remote(repo) ?? "";
    for (let round = 0; round < 4; round++) {
      // All working copies commit on the same parent before any of them pushes.
      const heads = await Promise.all(
        works.map(async (work, i) => {
          if (round > 0) {
            await work.git("fetch", "-q", remoteOf(i), "main");
            await work.git("reset", "-q", "--hard", "FETCH_HEAD");
          }
          return await work.commit(`${round} ${i}`);
        }),
      );
      const raced = await Promise.all(
        works.map(async (work, i) => {
          const { code } = await work.tryGit("push", remoteOf(i), "main");
          return code === 0 ? heads[i] : undefined;
        }),
      );
      const won = raced.filter((head) => head !== undefined);
      // Exactly one push wins, even if the pushes arrive one after the other, because the later commits do not
      // contain the winner's commit.
      expect(won).to.have.length(1);
      wins += won.length;
      const there = await works[0]?.git("ls-remote", one.remote(repo), "main");
      expect(there).to.contain(won[0]);
    }
    const copy = await freshClone(repo);
    expect(await copy.git("rev-list", "--count", "x/main")).to.equal(String(wins));
    for (const { faults } of gateways) expect(faults).to.deep.equal([]);
  });

  it("concurrent pushes to different branches of one repository all succeed", async () => {
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

  it("processes of one node share its cache while it is swept and emptied and one of them is killed", async () => {
    const swept = await world.gateway({ cacheBytesMax: 1 });
    const { dataDir } = swept;
    const child = () =>
      new ChildProgram([process.execPath, MAIN, world.world.url, dataDir, "none"], {});
    await using killed = child();
    await using lasting = child();
    const [killedPort, lastingPort] = await Promise.all(
      [killed, lasting].map(async (one) => (await one.line("listening")).split(" ")[1]),
    );
    const repo = await world.repo();
    const at = (port: string | undefined) => `http://x:${repo.token}@127.0.0.1:${port}${repo.path}`;
    const remotes = [at(killedPort), at(lastingPort), swept.remote(repo)];
    const work = await world.checkout();
    await work.commit("first");
    await work.git("push", "-q", remotes[0] ?? "", "main");
    let over = false;
    const sweeper = (async () => {
      for (let round = 0; !over; round++) {
        await swept.service.sweep();
        const emptied = round % 2 === 0 ? "packs" : "repos";
        await rm(join(dataDir, "git", emptied), { recursive: true, force: true }).catch(() => {});
        await (await world.checkout()).tryGit("fetch", "-q", remotes[2] ?? "", "main");
      }
    })();
    const pushers = Array.from({ length: 3 }, async (_, number) => {
      const own = await world.checkout();
      const heads: string[] = [];
      for (let round = 0; round < 8; round++) {
        heads.push(await own.commit(`${number} ${round}`));
        const remote = remotes[(number + round) % 3] ?? "";
        const branch = `main:branch-${number}`;
        // A push or fetch may fail while the cache is being emptied. Only acknowledged pushes count.
        if ((await own.tryGit("push", "-q", remote, branch)).code !== 0) heads.pop();
        if (number === 0 && round === 5) killed.signal("SIGKILL");
      }
      return heads;
    });
    const acknowledged = await Promise.all(pushers).finally(() => {
      over = true;
    });
    await sweeper;
    expect(acknowledged.flat()).to.have.length.above(8);
    const copy = await freshClone(repo);
    for (const [number, heads] of acknowledged.entries()) {
      for (const head of heads) {
        await copy.git("merge-base", "--is-ancestor", head, `x/branch-${number}`);
      }
    }
    // After all this, the shared cache is intact.
    const left = await world.checkout();
    await left.git("fetch", "-q", at(lastingPort), "+refs/heads/*:refs/heads/x/*");
    await left.git("fsck", "--full", "--strict");
  });

  it("keeps every acknowledged push and shows no partial push, wherever gateways are killed", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    const repo = await world.repo();
    const work = await world.checkout();
    const dataDir = await mkdtemp(join(world.folder, "killed-"));
    let [acknowledged, tip] = ["", ""];
    for (let round = 0; round < 14; round++) {
      const step = random.pick(STEPS);
      if (random.chance(0.3)) {
        // Git processes of the killed gateway may still write to this folder.
        await rm(dataDir, { recursive: true, force: true, maxRetries: 10 });
      }
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

  it("keeps every acknowledged push when the bus is killed, and continues once it is back", async () => {
    const { nats } = world.world;
    if (!nats) throw new Error("no server");
    const gateway = await world.gateway();
    const repo = await world.repo();
    const work = await world.checkout();
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    let acknowledged = "";
    for (const step of ["stored", "asked", "decided", "any"] as const) {
      const head = await work.commit(step);
      const reached = stepOf(gateway, step, random.integer(0, 120));
      const pushing = work.tryGit("push", gateway.remote(repo), "+main:main");
      await reached;
      await nats.kill();
      await nats.start();
      if ((await pushing).code === 0) acknowledged = head;
      const there = await until(
        "the bus is back",
        async () => {
          const listed = await work.tryGit("ls-remote", gateway.remote(repo), "main");
          return listed.code === 0 && { tip: listed.stdout.slice(0, 40) };
        },
        60_000,
      );
      if (acknowledged) await work.git("merge-base", "--is-ancestor", acknowledged, there.tip);
    }
    await work.git("push", "-q", gateway.remote(repo), "+main:main");
    const copy = await freshClone(repo);
    expect(await copy.git("rev-parse", "x/main")).to.equal(await work.git("rev-parse", "main"));
  });

  it("keeps every acknowledged push when its git process is killed: it runs once more, and a push whose second process is killed too is reported as failed", async () => {
    const gateway = await world.gateway();
    const repo = await world.repo();
    const work = await world.checkout();
    const programs = join(world.folder, "killed-git");
    await mkdir(programs);
    const real = (await work.git("--exec-path")).concat("/git");
    const marker = (number: number) => join(programs, `armed-${number}`);
    const arm = async (kills: number) => {
      for (let number = 1; number <= kills; number++) await writeFile(marker(number), "");
    };
    // The process dies after it has read a part of the pack.
    const script = `#!/bin/sh\nif [ "$1" = index-pack ] && { rm "${marker(1)}" || rm "${marker(2)}"; } 2>/dev/null; then\n  head -c 40 | "${real}" "$@" & kill -9 $$\nfi\nexec "${real}" "$@"\n`;
    await writeFile(join(programs, "git"), script, { mode: 0o755 });
    const { PATH } = process.env;
    const pushKilled = () => {
      process.env.PATH = `${programs}:${PATH}`;
      return work.tryGit("push", gateway.remote(repo), "main").finally(() => {
        process.env.PATH = PATH;
      });
    };
    for (let round = 0; round < 3; round++) {
      const before = await work.tryGit("ls-remote", gateway.remote(repo), "main");
      const head = await work.commit(`round ${round}`);
      await arm(2);
      const killed = await pushKilled();
      expect(killed.code).to.not.equal(0);
      expect(killed.stderr).to.contain("index-pack");
      const after = await work.tryGit("ls-remote", gateway.remote(repo), "main");
      expect(after.stdout).to.equal(before.stdout);
      await arm(1);
      expect((await pushKilled()).code).to.equal(0);
      expect(await readdir(programs), "one was killed").to.deep.equal(["git"]);
      const copy = await freshClone(repo);
      expect(await copy.git("rev-parse", "x/main")).to.equal(head);
    }
  });

  it("keeps every acknowledged push when a host of actors is killed", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    const program = { main: HOST, parameters: [] };
    const host = new ActorProcess({ url: world.world.url, name: "killed", program });
    try {
      await host.ready;
      const gateway = await world.gateway();
      // The actors of these repositories are spread over both hosts.
      const pushes = await Promise.all(
        Array.from({ length: 5 }, async () => {
          const [repo, work] = [await world.repo(), await world.checkout()];
          return { repo, work, head: await work.commit("first") };
        }),
      );
      const pushing = pushes.map(({ repo, work }) =>
        work.tryGit("push", gateway.remote(repo), "main"),
      );
      await stepOf(gateway, random.pick(["stored", "asked", "decided", "any"]), 50);
      await host.kill();
      const pushed = await Promise.all(pushing);
      for (const [at, { repo, work, head }] of pushes.entries()) {
        const push = () => work.tryGit("push", "-q", gateway.remote(repo), "main");
        // On a busy machine, the takeover may last longer than the deadline of a call.
        if (pushed[at]?.code !== 0) {
          await until("the push gets in", async () => (await push()).code === 0, 120_000);
        }
        const copy = await freshClone(repo);
        expect(await copy.git("rev-parse", "x/main")).to.equal(head);
      }
    } finally {
      await host.kill();
    }
  });
});
