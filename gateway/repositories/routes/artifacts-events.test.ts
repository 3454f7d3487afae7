import { createHash } from "node:crypto";
import { expect } from "chai";
import { persist } from "../../../actors/runtime/bus/persist.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { ALL_PERMISSIONS } from "../../../schemas/account/permissions.ts";
import type { RepoEventEnvelope } from "../../../schemas/repositories/repo-event-envelope.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { giveToken, openAccount } from "../../testing/test-gateway.ts";

describe("repository events and packs on the bus", function () {
  this.timeout(120_000);
  let world: ArtifactsWorld;
  before(async () => {
    world = await ArtifactsWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  async function eventsOf(namespace: string, count: number): Promise<RepoEventEnvelope[]> {
    return await until(`${count} are told`, async () => {
      const query = { after: 0, limit: 200 };
      const { events } = await world.world.client.call(repoEvents, world.accountId, "list", query);
      const own = events.map(({ event }) => event);
      const told = own.filter(({ source }) => source.namespace === namespace);
      return told.length >= count && told;
    });
  }

  it("publishes an event for each change, with its source and payload", async () => {
    const startedAt = Date.now();
    const { result: made } = await world.post("/told/repos", { name: "Base", description: "d" });
    const work = await world.checkout();
    const head = await work.commit("first");
    await work.git("push", "-q", world.remote(made), "main");
    const copy = await world.checkout();
    await copy.git("fetch", "-q", world.remote(made), "main:main", "--update-head-ok");
    const changes = [{ path: "by/rest", content: "x" }];
    const { result: commit } = await world.post("/told/repos/Base/commits", {
      message: "m",
      changes,
    });
    await copy.git("fetch", "-q", world.remote(made), "main");
    const { result: fork } = await world.post("/told/repos/Base/fork", { name: "Fork" });
    const asked = { repo: "Base", scope: "read", ttl: 60 };
    const { result: token } = await world.post("/told/tokens", asked);
    await world.ask(`/told/tokens/${token.id}`, { method: "DELETE" });
    await world.ask("/told/repos/Fork", { method: "DELETE" });

    const events = await eventsOf("told", 9);
    const told = (type: string) => {
      const found = events.filter((event) => event.type === `artifacts.repo.${type}`);
      for (const { metadata } of found) {
        expect(metadata.accountId).to.equal(world.accountId);
        expect(metadata.eventSchemaVersion).to.equal(1);
        expect(Date.parse(metadata.eventTimestamp)).to.be.within(startedAt, Date.now());
      }
      return found;
    };
    const ofAccount = { type: "artifacts", namespace: "told" };
    const ofBase = { type: "artifacts.repo", namespace: "told", repoName: "Base" };
    const about = { defaultBranch: "main", description: "d", readOnly: false };
    expect(told("created").map(({ source }) => source)).to.deep.equal([
      { ...ofAccount, repoName: "Base" },
    ]);
    expect(told("created")[0]?.payload).to.deep.include({ repoId: made.id, ...about });
    expect(told("forked").map(({ source }) => source)).to.deep.equal([
      { ...ofAccount, repoName: "Base" },
    ]);
    expect(told("forked")[0]?.payload).to.deep.include({
      repoId: fork.id,
      namespace: "told",
      repoName: "Fork",
    });
    expect(told("deleted").map(({ source }) => source)).to.deep.equal([
      { ...ofAccount, repoName: "Fork" },
    ]);
    expect(told("deleted")[0]?.payload).to.deep.include({ repoId: fork.id, ...about });
    const ref = "refs/heads/main";
    expect(told("pushed").map(({ source }) => source)).to.deep.equal([ofBase, ofBase]);
    const [first, second] = told("pushed").map(({ payload }) => payload);
    expect(first).to.deep.include({ ref, before: "0".repeat(40), after: head });
    expect(second).to.deep.include({ ref, before: head, after: commit.hash });
    expect(told("cloned").map(({ source }) => source)).to.deep.equal([ofBase]);
    expect(told("fetched").map(({ source }) => source)).to.deep.equal([ofBase]);
    const minted = told("token.created");
    expect(minted.map(({ source }) => source)).to.deep.equal([ofBase]);
    expect(minted[0]?.payload).to.deep.equal({
      tokenId: token.id,
      scope: "read",
      expiresAt: token.expires_at,
    });
    expect(told("token.revoked").map(({ payload }) => payload)).to.deep.equal([
      { tokenId: token.id },
    ]);
    expect(events).to.have.length(9);
  });

  it("stores no token, only its SHA-256", async () => {
    const { result: made } = await world.post("/secret/repos", { name: "one" });
    const { result: minted } = await world.post("/secret/tokens", { repo: "one" });
    const { result: forked } = await world.post("/secret/repos/one/fork", { name: "two" });
    const work = await world.checkout();
    await work.commit("first");
    await work.git("push", "-q", world.remote(made), "main");
    const secrets = [made.token, minted.plaintext, forked.token].map(
      (text: string) => text.split("?")[0] ?? "",
    );
    const hashes = secrets.map((secret) => createHash("sha256").update(secret).digest("hex"));
    const { bus } = world.world;
    let all = "";
    for await (const { config, state } of bus.jetstream.streams.list()) {
      for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
        const read = () => bus.jetstream.streams.getMessage(config.name, { seq });
        const message = await persist(systemClock, "read", read);
        if (message) all += `${message.subject} ${Buffer.from(message.data).toString("latin1")}\n`;
      }
    }
    for (const hash of hashes) expect(all).to.contain(hash);
    for (const secret of secrets) {
      expect(all).to.not.contain(secret.replace("art_v1_", ""));
      expect(all).to.not.contain(Buffer.from(secret).toString("base64url"));
    }
  });

  it("stores packs per account, each once within an account, however often a repository is forked", async () => {
    const blobs = new BlobStore(world.world.bus, systemClock);
    const before = await blobs.names("git");
    const stored = async () => [...(await blobs.names("git")).difference(before)].sort();
    const work = await world.checkout();
    await work.commit(`shared ${Math.random()}`);
    const { result: made } = await world.post("/shared/repos", { name: "one" });
    await work.git("push", "-q", world.remote(made), "main");
    const [own = "", ...none] = await stored();
    expect(none).to.deep.equal([]);
    const { result: fork } = await world.post("/shared/repos/one/fork", { name: "two" });
    await work.git("ls-remote", world.remote(fork), "main");
    expect(await stored()).to.deep.equal([own]);

    const { client } = world.world;
    const other = await openAccount(client, "Other");
    const token = await giveToken(client, other, ALL_PERMISSIONS);
    const response = await fetch(
      `${world.url}/v4/accounts/${other}/artifacts/namespaces/shared/repos`,
      {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ name: "one" }),
      },
    );
    const { result: theirs } = (await response.json()) as {
      result: { remote: string; token: string };
    };
    await work.git("push", "-q", world.remote(theirs), "main");
    expect(await stored()).to.deep.equal([own, own.replace(world.accountId, other)].sort());
    // A client that knows the id of an object cannot fetch the object from another repository.
    const head = await work.git("rev-parse", "main");
    const { result: void1 } = await world.post("/shared/repos", { name: "void" });
    const place = await world.checkout();
    expect((await place.tryGit("fetch", world.remote(void1), head)).code).to.not.equal(0);
  });
});
