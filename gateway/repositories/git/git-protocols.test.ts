import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import {
  type Checkout,
  type GitGateway,
  GitWorld,
  type Ran,
  type TestRepo,
} from "../testing/git-world.ts";

describe("git over HTTP, by each version of its protocol", function () {
  this.timeout(300_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  /**
   * Creates a repository with some commits of a small and a large file, one commit a day. `work` is the working copy
   * that pushed them.
   */
  async function filled(version: string, commits = 6): Promise<{ made: TestRepo; work: Checkout }> {
    const made = await world.repo();
    const work = await world.checkout();
    await work.git("config", "protocol.version", version);
    await work.git("remote", "add", "origin", gateway.remote(made));
    const lines = Array.from({ length: commits }, (_, i) => {
      const blob = (path: string, text: string) =>
        `M 100644 inline ${path}\ndata ${text.length}\n${text}\n`;
      const files = `${blob("dir/below/small", `${i}`)}${blob("long.txt", `a longer file ${i}`)}`;
      const who = `A <a@example.com> ${1_000_000_000 + i * 86_400} +0000`;
      return `commit refs/heads/main\ncommitter ${who}\ndata 2\nc${i}\n${files}\n`;
    });
    await writeFile(join(work.folder, ".git", "stream"), lines.join(""));
    await shell(work, "git fast-import --quiet < .git/stream");
    await work.git("reset", "-q", "--hard", "main");
    await work.git("push", "-q", "origin", "main");
    return { made, work };
  }

  async function cloned(from: TestRepo, version: string, ...options: string[]): Promise<Checkout> {
    const place = await world.checkout();
    const config = ["-c", `protocol.version=${version}`];
    await place.git("clone", "-q", ...config, ...options, gateway.remote(from), "copy");
    return Object.assign(place, { folder: join(place.folder, "copy") });
  }

  const count = async (place: Checkout, ref = "origin/main") =>
    Number(await place.git("rev-list", "--count", ref));

  for (const version of ["0", "1", "2"]) {
    it(`version ${version}: shallow clones, by depth, time and ref; deepened, unshallowed, pushed from`, async () => {
      const { made, work } = await filled(version);
      const shallow = await cloned(made, version, "--depth=2");
      expect(await count(shallow)).to.equal(2);
      await shallow.git("fetch", "-q", "--deepen=1");
      expect(await count(shallow)).to.equal(3);
      await shallow.git("fetch", "-q", "--depth=1");
      expect(await count(shallow)).to.equal(1);
      const head = await shallow.commit("from shallow");
      await shallow.git("push", "-q", "origin", "main");
      await shallow.git("fetch", "-q", "--unshallow");
      expect(await count(shallow)).to.equal(7);
      await shallow.git("fsck", "--full", "--strict");
      await work.git("pull", "-q", "--ff-only", "origin", "main");
      expect(await work.git("rev-parse", "main")).to.equal(head);
      const since = await cloned(made, version, `--shallow-since=${1_000_000_000 + 3 * 86_400}`);
      expect(await count(since)).to.equal(4);
      const none = ["clone", "-q", "--shallow-since=4000000000", gateway.remote(made), "none"];
      const refused = await work.tryGit("-c", `protocol.version=${version}`, ...none);
      expect(refused.code).to.equal(128);
      expect(refused.stderr).to.contain("no commits selected for shallow requests");
      expect(refused.stderr).to.not.contain("RPC failed");
      await work.git("push", "-q", "origin", "main~2:refs/tags/old");
      const without = await cloned(made, version, "--shallow-exclude=old");
      expect(await count(without)).to.equal(2);
    });

    it(`version ${version}: partial clones leave out filtered objects, and fetch them on demand`, async () => {
      const { made } = await filled(version, 3);
      for (const [filter, missing] of [
        ["blob:none", 6],
        ["blob:limit=10", 3],
        ["tree:0", 3],
        ["tree:1", 6],
      ] as const) {
        const part = await cloned(made, version, `--filter=${filter}`, "--no-checkout");
        const lacks = async () => {
          const listed = await part.git("rev-list", "--objects", "--missing=print", "main");
          return listed.split("\n").filter((line) => line.startsWith("?")).length;
        };
        expect(await lacks(), filter).to.equal(missing);
        await part.git("checkout", "-q", "main");
        expect(await part.git("show", "main:dir/below/small")).to.equal("2");
        expect(await part.git("show", "main~2:long.txt")).to.equal("a longer file 0");
        await part.git("log", "-p", "--format=%H");
        expect(await lacks(), filter).to.equal(0);
      }
      // Filters with which git would visit every path of every commit are refused, and git shows the refusal.
      for (const filter of ["tree:2", "sparse:oid=main:long.txt", "combine:blob:none+tree:0"]) {
        const place = await world.checkout();
        const { code, stderr } = await place.tryGit(
          ...["-c", `protocol.version=${version}`, "clone", "-q", `--filter=${filter}`],
          ...[gateway.remote(made), "copy"],
        );
        expect(code, filter).to.not.equal(0);
        expect(stderr, filter).to.match(/filter/);
      }
    });

    it(`version ${version}: tags, forced pushes, deletions, an empty repository, and refusals`, async () => {
      const { made, work } = await filled(version);
      await work.git("tag", "-a", "-m", "first", "v1", "main~1");
      await work.git("tag", "light", "main~2");
      await work.git("push", "-q", "origin", "--tags", "main:side");
      const copy = await cloned(made, version);
      expect(await copy.git("tag", "-l")).to.equal("light\nv1");
      expect(await copy.git("cat-file", "-t", "v1")).to.equal("tag");
      expect(await copy.git("ls-remote", "origin", "refs/tags/v1^{}")).to.contain(
        await work.git("rev-parse", "main~1"),
      );
      const refused = await work.tryGit("push", "origin", "main~1:main");
      expect(refused.stderr).to.contain("non-fast-forward");
      await work.git("push", "-q", "--force-with-lease", "origin", "main~1:main");
      await work.git("push", "-q", "origin", ":side", ":refs/tags/light");
      await copy.git("fetch", "-q", "--prune", "--prune-tags", "--force", "origin");
      expect(await copy.git("for-each-ref", "--format=%(refname)")).to.equal(
        [
          "refs/heads/main",
          "refs/remotes/origin/HEAD",
          "refs/remotes/origin/main",
          "refs/tags/v1",
        ].join("\n"),
      );
      expect(await copy.git("rev-parse", "origin/main")).to.equal(
        await work.git("rev-parse", "main~1"),
      );
      const empty = await world.repo();
      const first = await cloned(empty, version);
      await first.git("checkout", "-q", "-B", "main");
      const head = await first.commit("first");
      await first.git("push", "-q", "origin", "main");
      expect(await (await cloned(empty, version)).git("rev-parse", "HEAD")).to.equal(head);
    });
  }

  /**
   * Runs a command line with git through a shell. The line can set the variables that make git trace its requests.
   */
  async function shell(place: Checkout, line: string): Promise<Ran> {
    const ran = await place.tryGit("-c", `alias.run=!${line}`, "run");
    expect(ran.code, ran.stderr).to.equal(0);
    return ran;
  }

  it("accepts gzipped bodies, chunked bodies and Expect as git sends them", async () => {
    const { made, work } = await filled("2");
    const traced = async (place: Checkout, line: string) =>
      (await shell(place, `GIT_TRACE_CURL=1 GIT_TRACE_CURL_NO_DATA=1 git ${line}`)).stderr;
    const copy = await cloned(made, "2");
    for (let i = 0; i < 60; i++) await copy.commit(`mine ${i}`);
    const head = await work.commit("theirs");
    await work.git("push", "-q", "origin", "main");
    // The client has many commits of its own and names them in its request. The request is therefore so long that git
    // compresses it.
    const fetched = await traced(copy, "fetch -q origin");
    expect(fetched.toLowerCase()).to.contain("content-encoding: gzip");
    expect(await copy.git("rev-parse", "origin/main")).to.equal(head);

    await work.commit("x".repeat(10) + Array.from({ length: 90_000 }, (_, i) => i * i).join(), "f");
    const posted = "-c http.postBuffer=65536 -c http.extraHeader='Expect: 100-continue'";
    const pushed = (await traced(work, `${posted} push -q origin main`)).toLowerCase();
    expect(pushed).to.contain("transfer-encoding: chunked");
    expect(pushed).to.contain("expect: 100-continue");
    expect(pushed).to.contain("100 continue");
    // Git cannot send a chunked body twice, so it first checks with an empty request whether it may push.
    expect(pushed).to.contain("content-length: 4");
    expect(await work.git("ls-remote", "origin", "main")).to.contain(
      await work.git("rev-parse", "main"),
    );
  });

  it("lists refs without a process exactly as git does, except for the targets of tags", async () => {
    const { made, work } = await filled("2");
    const programs = join(world.folder, "counted-git");
    await mkdir(programs);
    const started = join(programs, "started");
    const real = join(await work.git("--exec-path"), "git");
    const script = `#!/bin/sh\ncase $1 in *-pack) echo "$*" >> "${started}" ;; esac\nexec "${real}" "$@"\n`;
    await writeFile(join(programs, "git"), script, { mode: 0o755 });
    const { PATH } = process.env;
    const runs = async () => (await readFile(started, "utf8")).split("\n").length;
    const told = async (of: TestRepo, service: string, version: string) => {
      const headers = { Authorization: `Bearer ${of.token}`, "Git-Protocol": `version=${version}` };
      const url = `${gateway.url}${of.path}/info/refs?service=${service}`;
      return Buffer.from(await (await fetch(url, { headers })).arrayBuffer()).toString("latin1");
    };
    /**
     * Returns git's own advertisement of the same refs. It has another agent name, and its capabilities may have
     * another order.
     */
    const byGit = async (version: string) => {
      const line = `GIT_PROTOCOL=version=${version} git -c transfer.hideRefs=refs/remotes -c uploadpack.allowFilter -c uploadpack.allowAnySHA1InWant upload-pack --stateless-rpc --http-backend-info-refs .git`;
      return (await shell(work, line)).stdout;
    };
    const comparable = (answer: string) =>
      answer
        .replace(/^001e# service=git-upload-pack\n0000/, "")
        .replace(
          /\0([^\n]*)/,
          (_, words) => `\0${words.split(" ").filter(Boolean).sort().join(" ")}`,
        );
    const empty = await world.repo();
    await work.git("push", "-q", "origin", "main~1:refs/heads/next", "main:refs/heads/a/b");
    await work.git("fetch", "-q", "origin", "+refs/heads/*:refs/heads/*", "--update-head-ok");
    await appendFile(started, "\n");
    process.env.PATH = `${programs}:${PATH}`;
    try {
      // The gateway asks git for its capabilities only once for each protocol version.
      for (const version of ["0", "2"]) await told(made, "git-upload-pack", version);
      const before = await runs();
      for (const version of ["0", "1"]) {
        const answer = comparable(await told(made, "git-upload-pack", version));
        expect(answer).to.equal(comparable(await byGit(version)));
        expect(await told(empty, "git-upload-pack", version)).to.match(/0000$/);
      }
      for (const version of ["0", "1", "2"]) {
        const place = await world.checkout();
        const config = ["-c", `protocol.version=${version}`];
        expect(await place.git(...config, "ls-remote", gateway.remote(empty))).to.equal("");
        const listed = await place.git(
          ...config,
          "ls-remote",
          gateway.remote(made),
          "HEAD",
          "next",
        );
        expect(listed.split("\n")).to.have.length(2);
      }
      const refused = await work.tryGit("push", "origin", "main~3:main");
      expect(refused.stderr).to.contain("non-fast-forward");
      expect(await runs()).to.equal(before);
      await work.git("tag", "-a", "-m", "first", "v1", "main~1");
      process.env.PATH = PATH;
      await work.git("push", "-q", "origin", "v1");
      const answer = comparable(await told(made, "git-upload-pack", "0"));
      expect(answer)
        .to.contain("refs/tags/v1^{}")
        .and.to.equal(comparable(await byGit("0")));
    } finally {
      process.env.PATH = PATH;
    }
  });
});
