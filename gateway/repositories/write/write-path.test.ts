import { createHash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { packBlob, repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";

/**
 * Limit for the bytes of each message of a push on the bus, except for its pack: commands, names, checksums and short
 * replies.
 */
const BESIDE_BYTES_MAX = 4_096;

describe("a push on the bus", function () {
  this.timeout(60_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  const manifestOf = ({ id, name }: TestRepo) =>
    world.actors.call(repoContract, id, "manifest", {
      address: { accountId: ACCOUNT, namespace: "tests", name },
      after: { version: 0, row: -1 },
      packsAfter: 0,
    });

  for (const [what, bytes] of [
    ["small", 1_000],
    ["large", 3_000_000],
  ] as const) {
    it(`stores a ${what} pack and its index under the SHA-256 of the pack, outside of messages`, async () => {
      const made = await world.repo();
      const work = await world.checkout();
      const content = randomBytes(bytes);
      const blob = await work.object("blob", content);
      await work.git("update-index", "--add", "--cacheinfo", `100644,${blob},file`);
      await work.git("commit", "-q", "-m", "first");
      const { connection } = world.world.bus;
      const heard: { subject: string; bytes: number }[] = [];
      const all = connection.subscribe(">", {
        callback: (_, { subject, data }) => void heard.push({ subject, bytes: data.length }),
      });
      await connection.flush();
      await work.git("push", "-q", gateway.remote(made), "main");
      await connection.flush();
      all.unsubscribe();
      const [beside, packed] = [false, true].map((isBlob) =>
        heard.filter(({ subject }) => subject.startsWith("blob.") === isBlob),
      );
      expect(packed?.reduce((sum, one) => sum + one.bytes, 0)).to.be.above(bytes);
      const swaps = beside?.filter(({ subject }) => subject.endsWith(`.repo.${made.id}`));
      expect(swaps, "the repository is asked").to.have.length.above(0);
      for (const one of beside ?? []) {
        // A batch of state may contain another row beside the manifest, but no objects.
        expect(one.bytes, one.subject).to.be.below(BESIDE_BYTES_MAX);
      }

      const { packs } = await manifestOf(made);
      expect(packs).to.have.length(1);
      const [pack] = packs;
      if (!pack) throw new Error("no pack");
      const chunks: Buffer[] = [];
      const blobs = new BlobStore(world.world.bus, systemClock);
      for await (const chunk of blobs.get(packBlob(ACCOUNT, pack.sha256), {})) {
        chunks.push(Buffer.from(chunk));
      }
      const stored = Buffer.concat(chunks);
      const files = [stored.subarray(0, pack.indexBytes), stored.subarray(pack.indexBytes)];
      expect(files[1]).to.have.length(pack.bytes);
      expect(
        createHash("sha256")
          .update(files[1] ?? "")
          .digest("hex"),
      ).to.equal(pack.sha256);
      for (const [at, end] of ["idx", "pack"].entries()) {
        await writeFile(join(work.folder, `stored.${end}`), files[at] ?? "");
      }
      const listed = await work.git("verify-pack", "-v", "stored.idx");
      expect(listed).to.contain(`${blob} blob`);
    });
  }

  it("publishes all refs of a push with their packs and events in one change of the repository", async () => {
    const made = await world.repo();
    const work = await world.checkout();
    await work.commit("first");
    const { actors } = gateway.service.parts;
    const call = actors.call.bind(actors);
    const asked: string[] = [];
    const versions: number[] = [];
    actors.call = async (contract, key, message, ...rest) => {
      if (key !== made.id) return await call(contract, key, message, ...rest);
      asked.push(String(message));
      const answered = await call(contract, key, message, ...rest);
      versions.push((await manifestOf(made)).version);
      return answered;
    };
    const before = (await manifestOf(made)).version;
    const refs = ["main", "main:one", "main:refs/tags/two"];
    await work.git("push", "-q", gateway.remote(made), ...refs);
    actors.call = call;
    expect(asked.filter((message) => message === "swap")).to.have.length(1);
    // Before `swap` is sent, the repository has not changed. After its reply, the repository does not change again.
    const decided = asked.indexOf("swap");
    expect(versions.slice(0, decided).every((version) => version === before)).to.equal(true);
    const after = versions[decided] ?? before;
    expect(after).to.be.above(before);
    const manifest = await manifestOf(made);
    expect(manifest.version).to.equal(after);
    expect(manifest.packs).to.have.length(1);
    const pushed = await until("all are told", async () => {
      const { events } = await world.actors.call(repoEvents, ACCOUNT, "list", {
        after: 0,
        limit: 200,
      });
      const own = events.filter(({ event }) => event.source.repoName === made.name);
      const told = own.flatMap(({ event }) => ("ref" in event.payload ? [event.payload.ref] : []));
      return told.length === 3 && told;
    });
    expect([...pushed].sort()).to.deep.equal([
      "refs/heads/main",
      "refs/heads/one",
      "refs/tags/two",
    ]);
  });
});
