import * as fs from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import git, { Errors } from "isomorphic-git";
import http from "isomorphic-git/http/node";
import { type GitGateway, GitWorld } from "../testing/git-world.ts";

const author = { name: "A", email: "a@example.com" };

describe("git over HTTP, for isomorphic-git", function () {
  this.timeout(60_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  it("pushes, clones whole and shallow, makes and deletes a branch, by Basic and by Bearer", async () => {
    const repo = await world.repo();
    const url = gateway.url + repo.path;
    const dir = await mkdtemp(join(world.folder, "iso-"));
    const basic = { onAuth: () => ({ username: "x", password: repo.token }) };
    const bearer = { headers: { Authorization: `Bearer ${repo.token}` } };
    await git.init({ fs, dir, defaultBranch: "main" });
    for (const content of ["one", "two"]) {
      fs.writeFileSync(join(dir, "file"), content);
      await git.add({ fs, dir, filepath: "file" });
      await git.commit({ fs, dir, message: content, author });
    }
    const pushed = await git.push({ fs, http, dir, url, ref: "main", ...basic });
    expect(pushed.ok).to.equal(true);
    const branched = { fs, http, dir, url, ref: "main", remoteRef: "refs/heads/other" };
    expect((await git.push({ ...branched, ...bearer })).ok).to.equal(true);
    const copy = await mkdtemp(join(world.folder, "iso-"));
    await git.clone({ fs, http, dir: copy, url, depth: 1, ...basic });
    expect(await git.log({ fs, dir: copy })).to.have.length(1);
    expect(fs.readFileSync(join(copy, "file"), "utf8")).to.equal("two");
    const whole = await mkdtemp(join(world.folder, "iso-"));
    await git.clone({ fs, http, dir: whole, url, ...bearer });
    expect(await git.log({ fs, dir: whole })).to.have.length(2);
    const gone = { fs, http, dir, url, remoteRef: "refs/heads/other", delete: true };
    expect((await git.push({ ...gone, ...basic })).ok).to.equal(true);
    const refs = await git.listServerRefs({ http, url, protocolVersion: 2, ...bearer });
    expect(refs.map(({ ref }) => ref)).to.deep.equal(["HEAD", "refs/heads/main"]);
  });

  it("cannot push with a read-only token", async () => {
    const repo = await world.repo();
    const token = await world.token(repo, "read");
    const dir = await mkdtemp(join(world.folder, "iso-"));
    await git.init({ fs, dir, defaultBranch: "main" });
    await git.commit({ fs, dir, message: "one", author });
    const headers = { Authorization: `Bearer ${token}` };
    const error = await git
      .push({ fs, http, dir, url: gateway.url + repo.path, ref: "main", headers })
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    expect(error).to.be.instanceOf(Errors.HttpError);
    expect((error as InstanceType<typeof Errors.HttpError>).data.statusCode).to.equal(403);
  });
});
