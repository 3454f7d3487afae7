/** Git over HTTP: who may do what with which repository, and who serves it. Refusals are sentences that git shows. */
import { join } from "node:path";
import express, {
  type ErrorRequestHandler,
  type Request,
  type Response,
  type Router,
} from "express";
import type { Logger } from "pino";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError, ERRORS, type ErrorCode } from "../../../schemas/errors.ts";
import {
  GIT_CACHE_BYTES_MAX,
  GIT_CACHE_SWEEP_MS,
} from "../../../schemas/repositories/git-limits.ts";
import { NamespaceName, RepoName } from "../../../schemas/repositories/git-names.ts";
import { GIT_SIZES, type GitSizes } from "../../../schemas/repositories/git-sizes.ts";
import { type RepoAddress, repo } from "../../../schemas/repositories/repo.ts";
import { Id } from "../../../schemas/values.ts";
import { FailedAuthentications } from "../../account/failed-authentications.ts";
import { AnswerPace, type AnswerPaceLimits } from "../../http/answer-pace.ts";
import { localsOf } from "../../http/locals.ts";
import type { Route } from "../../http/route.ts";
import { AnswerCache } from "../cache/answer-cache.ts";
import { sweepCache } from "../cache/cache-sweep.ts";
import { CloneIndexes } from "../cache/clone-index.ts";
import { ManifestReader } from "../cache/manifest-reader.ts";
import { RepoCache } from "../cache/repo-cache.ts";
import type { GitParts } from "../git-parts.ts";
import { addLfsRoutes, type LfsParts } from "../lfs/lfs-router.ts";
import { type LfsBlobs, LfsStore } from "../lfs/lfs-store.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { AccountStorage } from "../packs/account-storage.ts";
import { type PackBlobs, PackStore } from "../packs/pack-store.ts";
import { ProcessSlots, type SlotLimits } from "../process/process-slots.ts";
import { RepoFinder } from "../repo-finder.ts";
import {
  FetchCapabilities,
  fetchAdvertisement,
  receiveAdvertisement,
  serviceLine,
} from "./advertisement.ts";
import { FetchEvents } from "./fetch-events.ts";
import { shownToken } from "./git-auth.ts";
import { receivePack } from "./receive-pack.ts";
import { advertiseFetch, uploadPack, versionOf } from "./upload-pack.ts";

export interface GitOptions {
  actors: ActorClient;
  blobs: PackBlobs & LfsBlobs;
  /** The cache is a folder in it. */
  dataDir: string;
  now: () => number;
  cacheBytesMax?: number;
  slots?: Partial<SlotLimits>;
  /** Packs of at least this size get bitmaps when they are cloned. */
  bitmapsFromBytes?: number;
  /** How long a pack that was just stored is surely there. */
  packsHeldMs?: number;
  /** Base of the addresses in answers; defaults to the request's own host. */
  publicUrl?: string;
  /** How large what is in repositories may be. */
  sizes?: Partial<GitSizes> | undefined;
  /** How fast answers have to be taken. */
  pace?: Partial<AnswerPaceLimits> | undefined;
  /** Large files on their way at a time. */
  transfersMax?: number;
}

export interface GitService {
  parts: GitParts;
  /** To be mounted at `/git`. */
  router: Router;
  /** Brings the cache below its bound. */
  sweep(): Promise<void>;
  /** Resolves when all pending counts and events are sent. */
  stop(): Promise<void>;
}

type Service = "git-upload-pack" | "git-receive-pack";

interface Exchange {
  request: Request;
  response: Response;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
  logger: Logger;
}

export async function gitService(options: GitOptions): Promise<GitService> {
  const { actors, blobs, dataDir, now, cacheBytesMax = GIT_CACHE_BYTES_MAX } = options;
  const { packsHeldMs, publicUrl, transfersMax, bitmapsFromBytes } = options;
  const sizes = { ...GIT_SIZES, ...options.sizes };
  const storage = new AccountStorage(actors, { now, bytesMax: sizes.accountBytes });
  const held = { storage, ...(packsHeldMs !== undefined && { heldMs: packsHeldMs }) };
  const packs = new PackStore(blobs, actors, held);
  const lfs = new LfsStore(blobs, packs, held);
  const cache = new RepoCache(join(dataDir, "git"), packs, now);
  await cache.files.discardOfEarlierBoot();
  await cache.files.prepare();
  const slots = new ProcessSlots(options.slots);
  const parts: GitParts = {
    actors,
    answers: new AnswerCache(cache.files),
    cache,
    cloneIndexes: new CloneIndexes({ cache, slots, now, fromBytes: bitmapsFromBytes }),
    packs,
    pace: options.pace,
    sizes,
    fetchEvents: new FetchEvents(actors, now),
    finder: new RepoFinder(actors),
    lfs,
    manifests: new ManifestReader(actors),
    slots,
    storage,
  };
  const sweep = () => sweepCache(cache.files, { bytesMax: cacheBytesMax, now: now() });
  let sweeping = Promise.resolve();
  const timer = setInterval(() => {
    // What cannot be removed now is removed later.
    sweeping = sweeping.then(sweep).catch(() => {});
  }, GIT_CACHE_SWEEP_MS);
  timer.unref();
  const router = gitRouter(parts, { lfs, now, publicUrl, transfersMax });
  const stop = async () => {
    clearInterval(timer);
    await storage.stop();
  };
  return { parts, router, sweep, stop };
}

function gitRouter(
  parts: GitParts,
  { now, ...large }: Pick<LfsParts, "lfs" | "publicUrl" | "transfersMax"> & { now: () => number },
): Router {
  const router = express.Router({ caseSensitive: true });
  const failed = new FailedAuthentications(now);
  const capabilities = new FetchCapabilities(parts.cache.files);
  // With `.git` at the end of the name or without: clients of other hosts leave it out.
  const path = "/:account/:namespace/:name";
  router.get(`${path}/info/refs`, advertise);
  for (const service of ["git-upload-pack", "git-receive-pack"] as const) {
    router.post(`${path}/${service}`, (request, response) => exchange(service, request, response));
  }
  const { actors, sizes, storage } = parts;
  addLfsRoutes(router, path, { ...large, actors, sizes, storage, authorize: authorizeLarge });
  router.use(() => {
    throw new ActorError("not_found", "Not found: this is no address that git asks for");
  });
  router.use(sayToGit);
  return router;

  async function advertise(request: Request, response: Response): Promise<void> {
    const { service } = request.query;
    if (service !== "git-upload-pack" && service !== "git-receive-pack") {
      name(response, "git_dumb", "info/refs");
      throw new ActorError("forbidden", "Only the smart protocol of git is served here");
    }
    name(response, `${service}_refs`, "info/refs");
    const http = exchangeOf(request, response);
    const version = versionOf(request);
    if (service === "git-upload-pack" && version === 2) {
      // The same for all: what there is, the client asks for next.
      await authorize(http, service, async () => {});
      const offered = await capabilities.get(2);
      setType(response, service, "advertisement");
      response.send(Buffer.concat([serviceLine(service), offered]));
      return;
    }
    const opened = await open(http, service);
    setType(response, service, "advertisement");
    const told = version === 1 ? 1 : 0;
    const body =
      service === "git-upload-pack"
        ? fetchAdvertisement(opened.manifest, await capabilities.get(0), told)
        : receiveAdvertisement(opened.manifest, told);
    if (!body) {
      await advertiseFetch(parts, opened, http);
      return;
    }
    const content = Buffer.concat([serviceLine(service), body]);
    response.setHeader("Content-Length", content.length);
    await new AnswerPace(response, parts.pace).end(http.signal, content);
  }

  async function exchange(service: Service, request: Request, response: Response): Promise<void> {
    name(response, service, service);
    const type = `application/x-${service}-request`;
    if (request.get("content-type") !== type) {
      throw new ActorError("unsupported_media_type", `Cannot read body: expected ${type}`);
    }
    const http = exchangeOf(request, response);
    const opened = await open(http, service);
    setType(response, service, "result");
    if (service === "git-upload-pack") await uploadPack(parts, opened, http);
    else await receivePack(parts, opened, http);
  }

  async function open(http: Exchange, service: Service): Promise<OpenedRepo> {
    const { signal } = http;
    const opened = await authorize(http, service, async (id, address) => {
      const manifest = await parts.manifests.read(id, address, signal);
      return { id, accountId: address.accountId, address, manifest };
    });
    if (service === "git-receive-pack" && opened.manifest.status === "importing") {
      throw new ActorError("import_in_progress", "The repository is being imported");
    }
    if (service === "git-receive-pack" && opened.manifest.readOnly) {
      throw new ActorError("forbidden", "The repository is read-only");
    }
    return opened;
  }

  async function authorizeLarge<T>(
    request: Request,
    response: Response,
    { writing, id, end }: { writing: boolean; id: string; end: string },
    use: (id: string, address: RepoAddress, signal: AbortSignal) => Promise<T>,
  ): Promise<{ used: T; signal: AbortSignal }> {
    name(response, id, `info/lfs/${end}`);
    const http = exchangeOf(request, response);
    const { signal } = http;
    const service = writing ? "git-receive-pack" : "git-upload-pack";
    const used = await authorize(http, service, (repoId, address) => use(repoId, address, signal));
    return { used, signal };
  }

  /** Does this while the token is looked at, and tells of it once that is good. */
  async function authorize<T>(
    { request, signal }: Exchange,
    service: Service,
    use: (id: string, address: RepoAddress) => Promise<T>,
  ): Promise<T> {
    const secretHash = shownToken(request.get("authorization"));
    if (secretHash === undefined) {
      throw new ActorError("unauthenticated", "A token of this repository is needed");
    }
    const address = addressOf(request);
    const client = request.ip ?? "";
    // A repository's token names no identity but itself.
    const credential = { identity: secretHash, proof: "" };
    const attempt = await failed.begin(client, credential);
    const opens = async (id: string) => {
      const used = use(id, address);
      // Only a client whose token is good hears of this call's failure.
      used.catch(() => {});
      const input = { address, secretHash };
      const token = await parts.actors
        .call(repo, id, "verifyToken", input, { signal })
        .catch((error: unknown) => {
          throw isRefusal(error, "forbidden") ? new TokenRefused() : error;
        });
      return [token, await used] as const;
    };
    const [token, result] = await parts.finder
      .with(address, signal, opens)
      .catch((error: unknown) => {
        // Strangers must not learn which repositories exist.
        const isUnknown = error instanceof TokenRefused || isRefusal(error, "not_found");
        const retryAfterS = attempt.settle(isUnknown ? "unknown" : "unclear");
        if (retryAfterS > 0) {
          const text = "Too many unknown tokens came from this address";
          throw new ActorError("rate_limited", text, { retryAfterS });
        }
        throw isUnknown ? new ActorError("forbidden", NOT_OPENED) : error;
      });
    attempt.settle("good");
    if (service === "git-receive-pack" && token.scope !== "write") {
      throw new ActorError("forbidden", "Insufficient permissions: this token can only read");
    }
    return result;
  }
}

const NOT_OPENED = "Invalid or expired token, or there is no such repository";
class TokenRefused extends Error {}

const isRefusal = (error: unknown, code: ErrorCode) =>
  error instanceof ActorError && error.code === code;

/** What is no name can name nothing. */
function addressOf({ params }: Request): RepoAddress {
  const accountId = Id.safeParse(params.account);
  const namespace = NamespaceName.safeParse(params.namespace);
  const name = RepoName.safeParse(String(params.name).replace(/\.git$/, ""));
  if (!accountId.success || !namespace.success || !name.success) {
    throw new ActorError("forbidden", NOT_OPENED);
  }
  return { accountId: accountId.data, namespace: namespace.data, name: name.data };
}

/** For the log and the figures: paths of a closed list. */
function name(response: Response, id: string, end: string): void {
  const path = `/git/{account_id}/{namespace}/{name}.git/${end}`;
  // Outside /v4, log and metrics read only these two fields of a route.
  localsOf(response).route = { id, path } as Route;
}

function exchangeOf(request: Request, response: Response): Exchange {
  const gone = new AbortController();
  if (response.destroyed) gone.abort(clientLeft());
  response.once("close", () => {
    if (!response.writableFinished) gone.abort(clientLeft());
  });
  return { request, response, signal: gone.signal, logger: localsOf(response).logger };
}

/** Without a character set, of which git would not know what to make. */
function setType(response: Response, service: Service, part: "advertisement" | "result"): void {
  response.setHeader("Content-Type", `application/x-${service}-${part}`);
  response.setHeader("Cache-Control", "no-cache, max-age=0, must-revalidate");
}

const clientLeft = () => new ActorError("cancelled", "The client has left");

/** Git shows a text as it is, and asks for a password where the status is 401. */
const sayToGit: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  const locals = localsOf(response);
  const known = error instanceof ActorError && error.code !== "internal_error" ? error : undefined;
  locals.refusal = known?.code ?? "internal_error";
  if (!known) locals.logger.error({ err: error, route: locals.route?.path }, "request failed");
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { code, message, details } =
    known ?? new ActorError("internal_error", "A fault on our side; try again later");
  const { status } = ERRORS[code];
  if (status === 401) response.set("WWW-Authenticate", 'Basic realm="git", charset="UTF-8"');
  if (status === 429 || status === 503) {
    response.set("Retry-After", String(details.retryAfterS ?? 1));
  }
  response.status(status).type("text/plain").send(`${message}\n`);
};
