/**
 * A test environment: a bus, the actors of repositories, and gateways that serve git. The clients are real git
 * processes.
 */

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import express from "express";
import { pino } from "pino";
import { gitStorageActor } from "../../../actors/repositories/git-storage/git-storage.ts";
import { namespaceActor } from "../../../actors/repositories/namespace/namespace.ts";
import {
  packSweepActor,
  packSweepActorWith,
  type SweepTimes,
} from "../../../actors/repositories/pack-sweep/pack-sweep.ts";
import { repoActor } from "../../../actors/repositories/repo/repo.ts";
import { repoEventsActor } from "../../../actors/repositories/repo-events/repo-events.ts";
import { RowNames } from "../../../actors/runtime/commit/stored-subjects.ts";
import { type Clock, systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { namespaceKey } from "../../../schemas/repositories/git-names.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { namespace } from "../../../schemas/repositories/namespace.ts";
import { PACK_SWEEP, packSweep } from "../../../schemas/repositories/pack-sweep.ts";
import {
  type RepoSettings,
  type RepoTokenScope,
  repo,
} from "../../../schemas/repositories/repo.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { requestId } from "../../http/middleware/request-id.ts";
import { KEEP_ALIVE_MS } from "../../main.ts";
import { type GitOptions, type GitService, gitService } from "../git/git-service.ts";
import { newRepoToken, repoTokenText } from "../repo-token-text.ts";
import { upkeepWorker } from "../upkeep/upkeep-worker.ts";

export const ACCOUNT = "a".repeat(32);

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export interface TestRepo {
  id: string;
  name: string;
  /** A token that may read and write the repository. */
  token: string;
  /** Path below a gateway. */
  path: string;
}

export interface GitGateway {
  service: GitService;
  url: string;
  dataDir: string;
  /** Errors that the gateway has logged. */
  faults: unknown[];
  remote(repo: TestRepo, token?: string): string;
  stop(): Promise<void>;
}

export class GitWorld {
  readonly world: World;
  readonly folder: string;
  readonly #gateways: GitGateway[] = [];

  /** With `hosted` false, the test must start the actor hosts itself. */
  static async start({
    sweepTimes,
    hosted = true,
    clock = systemClock,
  }: {
    sweepTimes?: SweepTimes;
    hosted?: boolean;
    /** The clock of the actors. */
    clock?: Clock;
  } = {}): Promise<GitWorld> {
    const world = await startWorld({
      definitions: [
        repoActor,
        namespaceActor,
        repoEventsActor,
        gitStorageActor,
        sweepTimes ? packSweepActorWith(sweepTimes) : packSweepActor,
      ],
      tasks: [gitUpkeep],
      // A sweep treats a pack as named while the bus still shows its row. In production that lasts a minute, and each
      // test would wait for it.
      markerMs: 1_000,
      clock,
    });
    if (hosted) await world.host();
    return new GitWorld(world, await mkdtemp(join(tmpdir(), "trunkline-git-")));
  }

  constructor(world: World, folder: string) {
    this.world = world;
    this.folder = folder;
  }

  get actors() {
    return this.world.client;
  }

  /** Starts a gateway. With the `dataDir` of another gateway, both share a cache. */
  async gateway(options: Partial<GitOptions> = {}): Promise<GitGateway> {
    const dataDir = options.dataDir ?? (await mkdtemp(join(this.folder, "data-")));
    const service = await gitService({
      actors: await this.world.newClient(),
      blobs: new BlobStore(this.world.bus, systemClock),
      now: Date.now,
      ...options,
      dataDir,
    });
    const faults: unknown[] = [];
    const write = (line: string) => faults.push(JSON.parse(line));
    const app = express();
    app.use(requestId(pino({ level: "error" }, { write })));
    app.use("/git", service.router);
    // The keep-alive time of production. With Node's default of 5 s, a test that computes for longer would find its
    // connection closed.
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, app).listen(0, "127.0.0.1");
    await once(server, "listening");
    const gateway: GitGateway = {
      service,
      dataDir,
      faults,
      url: `http://127.0.0.1:${portOf(server)}`,
      remote: ({ path, token }, shown = token) =>
        `http://x:${shown}@127.0.0.1:${portOf(server)}${path}`,
      async stop() {
        await service.stop();
        server.closeAllConnections();
        server.close();
        if (server.listening) await once(server, "close");
      },
    };
    this.#gateways.push(gateway);
    return gateway;
  }

  /** Makes a gateway run the upkeep tasks of packs. */
  async upkeep({ service }: GitGateway): Promise<void> {
    const rows = new RowNames(this.world.bus, { buckets: 1 });
    const blobs = new BlobStore(this.world.bus, systemClock);
    await this.world.worker([upkeepWorker(service.parts, { blobs, rows })]);
    await this.actors.send(packSweep, PACK_SWEEP, "begin", {});
  }

  async repo(
    settings: Partial<Zod<typeof RepoSettings>> = {},
    accountId = ACCOUNT,
  ): Promise<TestRepo> {
    const id = newRepoId();
    const name = `r${id}`;
    const address = { accountId, namespace: "tests", name };
    const whole = {
      description: null,
      defaultBranch: "main",
      readOnly: false,
      protectedRefs: [],
      ...settings,
    };
    const listing = {
      ...whole,
      id,
      name,
      source: null,
      status: "ready" as const,
      createdAt: 0,
      updatedAt: 0,
      lastPushAt: null,
    };
    const key = namespaceKey(accountId, "tests");
    await this.actors.call(namespace, key, "claim", { accountId, name: "tests", listing });
    const { secret, secretHash } = newRepoToken();
    await this.actors.call(repo, id, "create", {
      ...address,
      ...whole,
      source: null,
      status: "ready",
      token: { secretHash, scope: "write", ttlS: 3_600 },
    });
    return { id, name, token: secret, path: `/git/${accountId}/tests/${name}.git` };
  }

  async token({ id }: TestRepo, scope: RepoTokenScope, ttlS = 3_600): Promise<string> {
    const { secret, secretHash } = newRepoToken();
    const minted = await this.actors.call(repo, id, "mintToken", { secretHash, scope, ttlS });
    return repoTokenText(secret, minted.expiresAt);
  }

  /** Creates a working copy in a new folder. `programs` is a further folder in which git finds programs. */
  async checkout({ programs }: { programs?: string } = {}): Promise<Checkout> {
    const checkout = new Checkout(await mkdtemp(join(this.folder, "work-")), programs);
    await checkout.git("init", "-q", "-b", "main");
    return checkout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const gateway of this.#gateways) await gateway.stop();
    await this.world[Symbol.asyncDispose]();
    // A git process of a stopped gateway may still write to this folder.
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

type Zod<S extends { _zod: { output: unknown } }> = S["_zod"]["output"];

/** A working copy with the real git, in its own folder and without this machine's configuration. */
export class Checkout {
  readonly folder: string;
  readonly #programs: string | undefined;

  constructor(folder: string, programs?: string) {
    this.folder = folder;
    this.#programs = programs;
  }

  /** Runs git. Rejects if git fails. */
  async git(...parameters: string[]): Promise<string> {
    const ran = await this.tryGit(...parameters);
    if (ran.code !== 0) throw new Error(`git ${parameters.join(" ")}: ${ran.stderr}${ran.stdout}`);
    return ran.stdout.trim();
  }

  tryGit(...parameters: string[]): Promise<Ran> {
    return runGitClient(this.folder, parameters, "", this.#programs);
  }

  /** Writes an object without any check of its content. */
  async object(type: string, content: string | Uint8Array): Promise<string> {
    const parameters = ["hash-object", "-w", "--literally", "--stdin", "-t", type];
    const ran = await runGitClient(this.folder, parameters, content);
    if (ran.code !== 0) throw new Error(ran.stderr);
    return ran.stdout.trim();
  }

  /** Writes a tree with one entry. */
  tree(mode: string, name: string, id: string): Promise<string> {
    return this.object("tree", treeOf([{ mode, name, id }]));
  }

  commitTree(tree: string, ...parents: string[]): Promise<string> {
    return this.git("commit-tree", tree, "-m", "x", ...parents.flatMap((parent) => ["-p", parent]));
  }

  /** Commits one file on the current branch. */
  async commit(content: string, file = "file.txt"): Promise<string> {
    const blob = await this.object("blob", content);
    await this.git("update-index", "--add", "--cacheinfo", `100644,${blob},${file}`);
    await this.git("commit", "-q", "-m", content.slice(0, 50));
    return await this.git("rev-parse", "HEAD");
  }

  /** Makes a branch a single commit of exactly these files, given by path. */
  async commitFiles(files: ReadonlyMap<string, string>, branch = "main"): Promise<string> {
    const head = `commit refs/heads/${branch}\ncommitter A <a@example.com> 1700000000 +0000\n`;
    const entries = Array.from(files, ([path, content]) => {
      return `M 100644 inline ${path}\ndata ${Buffer.byteLength(content)}\n${content}\n`;
    });
    const stream = `${head}data 1\nx\n${entries.join("")}`;
    const ran = await runGitClient(this.folder, ["fast-import", "--quiet", "--force"], stream);
    if (ran.code !== 0) throw new Error(ran.stderr);
    return await this.git("rev-parse", branch);
  }
}

export function treeOf(entries: readonly { mode: string; name: string; id: string }[]): Buffer {
  return Buffer.concat(
    entries.flatMap(({ mode, name, id }) => [
      Buffer.from(`${mode} ${name}\0`),
      Buffer.from(id, "hex"),
    ]),
  );
}

export function runGitClient(
  cwd: string,
  parameters: readonly string[],
  input: string | Uint8Array = "",
  programs?: string,
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      "git",
      [...parameters],
      {
        cwd,
        maxBuffer: 64 * 1024 * 1024,
        env: {
          PATH: [...(programs === undefined ? [] : [programs]), process.env.PATH].join(":"),
          HOME: cwd,
          GIT_CONFIG_NOSYSTEM: "1",
          GIT_TERMINAL_PROMPT: "0",
          GIT_AUTHOR_NAME: "A",
          GIT_AUTHOR_EMAIL: "a@example.com",
          GIT_COMMITTER_NAME: "A",
          GIT_COMMITTER_EMAIL: "a@example.com",
        },
      },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr });
      },
    );
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

export const newRepoId = () =>
  (BigInt(`0x${randomBytes(16).toString("hex")}`) % 36n ** 16n).toString(36).padStart(16, "0");

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
