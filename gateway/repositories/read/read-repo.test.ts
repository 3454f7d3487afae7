import { expect } from "chai";
import { ACCOUNT, GitWorld } from "../testing/git-world.ts";
import { ObjectReaders } from "./read-objects.ts";
import { RepoReader } from "./read-repo.ts";

describe("RepoReader", function () {
  this.timeout(60_000);
  let world: GitWorld;
  before(async () => {
    world = await GitWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  it("file() reserves the memory of a directory that it reads", async () => {
    const gateway = await world.gateway();
    const { parts } = gateway.service;
    const { signal } = new AbortController();
    const made = await world.repo();
    const work = await world.checkout();
    const first = await work.commit("content");
    const described = `d/x-g${first.slice(0, 8)}`;
    await work.commit("notes", described);
    await work.git("push", "-q", gateway.remote(made), "main");
    const address = { accountId: ACCOUNT, namespace: "tests", name: made.name };
    const manifest = await parts.manifests.read(made.id, address, signal);
    const repo = { id: made.id, accountId: ACCOUNT, address, manifest };
    const readers = new ObjectReaders(parts.cache, { now: Date.now });
    try {
      const reader = new RepoReader(parts, readers, repo, signal);
      const held: number[] = [];
      const read = async (path: string) => {
        const found = await reader.file("main", path, (bytes) => held.push(bytes));
        return (await found?.content())?.toString();
      };
      expect(await read("file.txt")).to.equal("content");
      expect(held).to.deep.equal([]);
      expect(await read(described)).to.equal("notes");
      expect(held).to.deep.equal([Number(await work.git("cat-file", "-s", "HEAD:d"))]);
    } finally {
      await readers.close();
    }
  });
});
