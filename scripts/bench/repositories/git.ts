/**
 * Benchmarks pushes, clones, forks and commits. The reference is `git http-backend` behind a plain Node server, which
 * does not store durably.
 */
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { FLUSH, pktLine } from "../../../gateway/repositories/git/pkt-line.ts";
import { alternate, type Benchmark, type Figure, median, type Target } from "../benchmark.ts";
import { Child } from "../child.ts";
import { Instance } from "../instance.ts";
import { GitHistory, REF } from "./git-history.ts";

const PUSHERS = 8;
/** Number of pushes of each pusher in a round, with one pusher and with several in parallel. */
const PUSHES = 6;
/** Number of clones per round. A few are enough, because most of the time is spent in the git client and varies. */
const CLONES = 3;
/** Number of clones per round that follow directly after a push, so that no cache can contain the response. */
const CLONES_AFTER_PUSH = 2;
const FORKS = 20;
const COMMITS = 40;
/** One round only warms up. */
const ROUNDS_ALL = 6;
/** The packet that separates a command's capabilities from its arguments. */
const DELIMITER = Buffer.from("0001");
const NAMESPACE = "artifacts/namespaces/bench";

interface Remote {
  url: string;
  authorization?: string;
}

const run = promisify(execFile);

export const git: Benchmark = {
  name: "git",
  async run() {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-git-"));
    try {
      return await measure(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function measure(folder: string): Promise<Figure[]> {
  const history = await GitHistory.make(folder, (PUSHES + CLONES_AFTER_PUSH) * ROUNDS_ALL);
  const root = join(folder, "reference");
  const names = Array.from({ length: PUSHERS + 1 }, (_, number) => `repo-${number}`);
  for (const name of names) {
    await cp(history.folder, join(root, `${name}.git`), { recursive: true });
  }
  await using plain = await Child.start("repositories/git-http-process", root);
  const base = await plain.ask<string>("url");
  const reference = names.map((name): Remote => ({ url: `${base}/${name}.git` }));

  await using instance = await Instance.start();
  const request = instance.requester();
  const answer = async (method: string, path: string, body?: object) => {
    const { result } = (await (await request(method, path, body)).json()) as {
      result: { remote: string; token: string; commit: { hash: string } };
    };
    return result;
  };
  const created = await answer("POST", `${NAMESPACE}/repos`, { name: "repo-0" });
  const first = remoteOf(created);
  await gitRun(history.folder, first, ["push", "-q", first.url, "main"]);
  const fork = async (name: string) =>
    remoteOf(await answer("POST", `${NAMESPACE}/repos/repo-0/fork`, { name }));
  const ours = [first];
  for (const name of names.slice(1)) ours.push(await fork(name));

  const figures: Figure[] = [];
  const compare = async (
    name: string,
    unit: string,
    target: Target | undefined,
    one: (remotes: readonly Remote[]) => Promise<number>,
    count = 1,
  ) => {
    const times = async (remotes: readonly Remote[]) => {
      const all: number[] = [];
      for (let time = 0; time < count; time++) all.push(await one(remotes));
      return median(all);
    };
    const rounds = await alternate(
      () => times(reference),
      () => times(ours),
    );
    const [of, own] = [median(rounds.reference), median(rounds.ours)];
    figures.push({ name, unit, ours: own, reference: of, ...(target && { target }) });
  };

  const clone = async (remote: Remote | undefined, ...options: string[]) => {
    if (!remote) throw new Error("no remote");
    const target = join(folder, `clone-${Math.random()}`);
    const before = performance.now();
    await gitRun(folder, remote, ["clone", "-q", "--bare", ...options, remote.url, target]);
    const ms = performance.now() - before;
    await rm(target, { recursive: true });
    return ms;
  };
  const wiped = async (remotes: readonly Remote[]) => {
    const isOurs = remotes === ours;
    if (isOurs) await rm(join(instance.dataDir, "git"), { recursive: true, force: true });
    return await clone(remotes[0]);
  };
  const pushed = new Map<Remote, number>();
  const pushNext = async (remote: Remote) => {
    const at = pushed.get(remote) ?? 0;
    pushed.set(remote, at + 1);
    const body = history.pushes[at]?.body;
    if (!body) throw new Error("Cannot push: no more is prepared");
    await push(remote, body);
  };
  const cloneAfterPush = async ([remote]: readonly Remote[]) => {
    if (remote) await pushNext(remote);
    return await clone(remote);
  };
  const serve = async ([remote]: readonly Remote[]) => {
    if (!remote) throw new Error("no remote");
    const before = performance.now();
    await fetchShallow(remote);
    return performance.now() - before;
  };
  const serveAfterPush = async (remotes: readonly Remote[]) => {
    if (remotes[0]) await pushNext(remotes[0]);
    return await serve(remotes);
  };
  const full = ([remote]: readonly Remote[]) => clone(remote);
  const shallow = ([remote]: readonly Remote[]) => clone(remote, "--depth", "1");
  const atMost = { same: { atMost: 1 }, less: { atMost: 0.6 } };
  await compare("git, full clone", "ms", atMost.same, full, CLONES);
  await compare("git, full clone after a push", "ms", atMost.same, cloneAfterPush);
  await compare("git, clone of depth 1", "ms", atMost.less, shallow, CLONES);
  // Measures only the server's part of the time. The rest is spent in the git client.
  await compare("git, clone of depth 1, server", "ms", undefined, serve);
  // No cache contains this response, so both sides spend nearly all time in git's `pack-objects`.
  await compare("git, clone of depth 1 after a push, server", "ms", undefined, serveAfterPush);
  await compare("git, first clone of a cold node", "ms", { atMost: 1.5 }, wiped);

  await compare("git, push of one commit, server", "ms", { atMost: 0.8 }, async ([remote]) => {
    const times: number[] = [];
    for (let i = 0; remote && i < PUSHES; i++) {
      const before = performance.now();
      await pushNext(remote);
      times.push(performance.now() - before);
    }
    return median(times);
  });
  await compare("git, 8 pushers at once", "pushes/s", { atLeast: 1.5 }, async ([, ...remotes]) => {
    const before = performance.now();
    await Promise.all(
      remotes.map(async (remote) => {
        for (let i = 0; i < PUSHES; i++) await pushNext(remote);
      }),
    );
    return (PUSHERS * PUSHES * 1_000) / (performance.now() - before);
  });

  const forkMs: number[] = [];
  for (let number = 0; number < FORKS; number++) {
    const before = performance.now();
    await fork(`fork-${number}`);
    forkMs.push(performance.now() - before);
  }
  const commitMs: number[] = [];
  for (let number = 0; number < COMMITS; number++) {
    const before = performance.now();
    await answer("POST", `${NAMESPACE}/repos/fork-0/commits`, {
      branch: "main",
      message: `commit ${number}`,
      changes: [{ path: `notes/${number % 5}.txt`, content: `text ${number}\n` }],
    });
    commitMs.push(performance.now() - before);
  }
  figures.push(
    { name: "git, fork by REST", unit: "ms p50", ours: median(forkMs), target: { atMost: 10 } },
    {
      name: "git, commit of a file by REST",
      unit: "ms p50",
      ours: median(commitMs),
      target: { atMost: 15 },
    },
  );
  return figures;
}

function remoteOf({ remote, token }: { remote: string; token: string }): Remote {
  const basic = Buffer.from(`x:${token}`).toString("base64");
  return { url: remote, authorization: `Basic ${basic}` };
}

/** Sends the requests of a push without a git client. */
async function push({ url, authorization }: Remote, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const headers = authorization === undefined ? {} : { authorization };
  const advertised = await fetch(`${url}/info/refs?service=git-receive-pack`, { headers });
  await advertised.arrayBuffer();
  const type = { "content-type": "application/x-git-receive-pack-request" };
  const answered = await fetch(`${url}/git-receive-pack`, {
    method: "POST",
    headers: { ...headers, ...type },
    body,
  });
  const report = await answered.text();
  if (!report.includes(`ok ${REF}`)) throw new Error(`Cannot push: ${report}`);
}

/** Sends the HTTP requests of a clone with depth 1 without a git client (gitprotocol-v2(5)). */
async function fetchShallow({ url, authorization }: Remote): Promise<void> {
  const headers = {
    "git-protocol": "version=2",
    ...(authorization !== undefined && { authorization }),
  };
  const ask = async (command: string, parameters: readonly string[]) => {
    const lines = [`command=${command}`, "agent=git/2.39.5", "object-format=sha1"].map((text) =>
      pktLine(text),
    );
    const body = Buffer.concat([
      ...lines,
      DELIMITER,
      ...parameters.map((text) => pktLine(text)),
      FLUSH,
    ]);
    const type = { "content-type": "application/x-git-upload-pack-request" };
    const response = await fetch(`${url}/git-upload-pack`, {
      method: "POST",
      headers: { ...headers, ...type },
      body,
    });
    return Buffer.from(await response.arrayBuffer());
  };
  const advertised = await fetch(`${url}/info/refs?service=git-upload-pack`, { headers });
  await advertised.arrayBuffer();
  const refs = await ask("ls-refs", ["peel", "symrefs", "ref-prefix HEAD", `ref-prefix ${REF}`]);
  const tip = /([0-9a-f]{40}) refs\/heads\/main/.exec(refs.toString("latin1"))?.[1];
  if (tip === undefined) throw new Error("Cannot fetch: the branch is not listed");
  const wanted = ["thin-pack", "no-progress", "ofs-delta", `want ${tip}`, "done", "deepen 1"];
  const pack = await ask("fetch", wanted);
  if (!pack.includes("PACK")) throw new Error(`Cannot fetch: ${pack.subarray(0, 200)}`);
}

async function gitRun(cwd: string, { authorization }: Remote, parameters: string[]): Promise<void> {
  await run("git", parameters, {
    cwd,
    env: {
      PATH: process.env.PATH,
      HOME: cwd,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
      ...(authorization !== undefined && {
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "http.extraHeader",
        GIT_CONFIG_VALUE_0: `Authorization: ${authorization}`,
      }),
    },
  });
}
