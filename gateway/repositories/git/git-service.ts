/** Assembles the parts that serve git in one gateway: stores, cache, process slots and the router over them. */
import { join } from "node:path";
import type { Router } from "express";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { watchLevel } from "../../../schemas/meter.ts";
import { GIT_SIZES, type GitSizes } from "../../../schemas/repositories/git-sizes.ts";
import { GIT_CACHE_BYTES_MAX } from "../../../schemas/repositories/limits.ts";
import type { Tokens } from "../../account/found-token.ts";
import type { AnswerPaceLimits } from "../../http/answer-pace.ts";
import { AnswerCache } from "../cache/answer-cache.ts";
import { sweepCache } from "../cache/cache-sweep.ts";
import { CloneIndexes } from "../cache/clone-index.ts";
import { ManifestReader } from "../cache/manifest-reader.ts";
import { RepoCache } from "../cache/repo-cache.ts";
import type { GitParts } from "../git-parts.ts";
import { type LfsBlobs, LfsStore } from "../lfs/lfs-store.ts";
import { AccountStorage } from "../packs/account-storage.ts";
import { type PackBlobs, PackStore } from "../packs/pack-store.ts";
import { ProcessSlots, type SlotLimits } from "../process/process-slots.ts";
import { RepoFinder } from "../repo-finder.ts";
import { FetchEvents } from "./fetch-events.ts";
import { requestBudget } from "./git-body.ts";
import { gitRouter } from "./git-router.ts";
import { type DiscardLimits, PushDiscards } from "./push-discards.ts";

/** How often a gateway sweeps its cache. */
const GIT_CACHE_SWEEP_MS = 60_000;

export interface GitOptions {
  actors: ActorClient;
  blobs: PackBlobs & LfsBlobs;
  /** The data folder; the cache is its subfolder `git`. */
  dataDir: string;
  now: () => number;
  /**
   * Reads the API tokens of accounts, which open repositories if their permissions allow it. When absent, only a
   * repository's own tokens open it.
   */
  tokens?: Tokens | undefined;
  cacheBytesMax?: number;
  slots?: Partial<SlotLimits>;
  /** A repository whose packs together have at least this size gets bitmaps after a clone. */
  bitmapsFromBytes?: number;
  /** How long the sweep keeps a newly stored pack that no repository names yet. */
  packsHeldMs?: number;
  /** Base of the addresses in responses; defaults to the request's own host. */
  publicUrl?: string;
  /** Size limits of repositories. */
  sizes?: Partial<GitSizes> | undefined;
  /** Returns the bytes that an account may store; 0 means no limit. Default: those of `sizes`. */
  accountBytes?: (() => number) | undefined;
  /** Speed at which clients must read responses. */
  pace?: Partial<AnswerPaceLimits> | undefined;
  /** Limit for the bytes of requests in memory. */
  bodiesBytesMax?: number;
  /** Limits for the bytes of refused pushes that are read and discarded. */
  discards?: Partial<DiscardLimits>;
  /** Limit for the large files in transfer at the same time. */
  transfersMax?: number;
}

export interface GitService {
  parts: GitParts;
  /** To be mounted at `/git`. */
  router: Router;
  /** Brings the cache below its limit. */
  sweep(): Promise<void>;
  /** Reads no refused push any further. To be called before a stop waits for the requests in flight. */
  leave(): void;
  /** Stops the sweeps. Resolves when all pending counts of stored bytes are sent. */
  stop(): Promise<void>;
}

/** Starts the service of one gateway. The caller must stop it. */
export async function gitService(options: GitOptions): Promise<GitService> {
  const { actors, blobs, dataDir, now, cacheBytesMax = GIT_CACHE_BYTES_MAX } = options;
  const { packsHeldMs, publicUrl, transfersMax, bitmapsFromBytes } = options;
  const sizes = { ...GIT_SIZES, ...options.sizes };
  const { accountBytes: bytesMax = () => sizes.accountBytes } = options;
  const storage = new AccountStorage(actors, { now, bytesMax });
  const held = { storage, ...(packsHeldMs !== undefined && { heldMs: packsHeldMs }) };
  const packs = new PackStore(blobs, actors, held);
  const lfs = new LfsStore(blobs, packs, held);
  const cache = new RepoCache(join(dataDir, "git"), packs, now);
  await cache.files.discardUntrusted(await packs.createdAt());
  await cache.files.prepare();
  const slots = new ProcessSlots(options.slots);
  const unwatch = [
    watchLevel("git_processes_running", () => slots.running),
    watchLevel("git_processes_max", () => slots.max),
    watchLevel("git_requests_waiting", () => slots.waiting),
  ];
  const parts: GitParts = {
    actors,
    answers: new AnswerCache(cache.files),
    bodies: requestBudget(options.bodiesBytesMax),
    cache,
    cloneIndexes: new CloneIndexes({ cache, slots, fromBytes: bitmapsFromBytes }),
    packs,
    pace: options.pace,
    pushDiscards: new PushDiscards(options.discards),
    sizes,
    fetchEvents: new FetchEvents(actors, now),
    finder: new RepoFinder(actors),
    lfs,
    manifests: new ManifestReader(actors),
    slots,
    storage,
  };
  const sweep = () => sweepCache(cache.files, { bytesMax: cacheBytesMax, ages: cache.ages });
  let sweeping = Promise.resolve();
  const timer = setInterval(() => {
    // The error of a sweep is ignored, because a later sweep does the same work.
    sweeping = sweeping.then(sweep).catch(() => {});
  }, GIT_CACHE_SWEEP_MS);
  timer.unref();
  const router = gitRouter(parts, { now, tokens: options.tokens, publicUrl, transfersMax });
  const stop = async () => {
    clearInterval(timer);
    for (const end of unwatch) end();
    await storage.stop();
  };
  const leave = () => parts.pushDiscards.stop();
  return { parts, router, sweep, leave, stop };
}
