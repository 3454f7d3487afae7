/** Git LFS: large files beside the objects of a repository, by the batch API with transfers of the kind `basic`. */
import type { ErrorRequestHandler, Request, Response, Router } from "express";
import { z } from "zod";
import { ActorError, ERRORS } from "../../../schemas/errors.ts";
import {
  LFS_BATCH_MAX,
  LFS_QUESTION_BYTES_MAX,
  LFS_TRANSFERS_MAX,
} from "../../../schemas/repositories/git-limits.ts";
import { lfsObjectBytes } from "../../../schemas/repositories/git-sizes.ts";
import { LfsObject } from "../../../schemas/repositories/lfs.ts";
import { type RepoAddress, repo } from "../../../schemas/repositories/repo.ts";
import { localsOf } from "../../http/locals.ts";
import { answerRanged } from "../../http/ranged-answer.ts";
import { readJson } from "../../http/read-json.ts";
import { gitBody, wholeBody } from "../git/git-body.ts";
import type { GitParts } from "../git-parts.ts";
import { heldNow } from "../packs/pack-store.ts";
import type { LfsStore } from "./lfs-store.ts";

export interface LfsParts extends Pick<GitParts, "actors" | "sizes" | "storage"> {
  lfs: LfsStore;
  /** Where addresses begin; as the request has it, where it is not given. */
  publicUrl?: string | undefined;
  /** As for git itself: refuses who may not, names the request for the log. */
  authorize<T>(
    request: Request,
    response: Response,
    asked: { writing: boolean; id: string; end: string },
    use: (id: string, address: RepoAddress, signal: AbortSignal) => Promise<T>,
  ): Promise<{ used: T; signal: AbortSignal }>;
  transfersMax?: number | undefined;
}

const TYPE = "application/vnd.git-lfs+json";

/** What clients send beside these is theirs to use with other servers. */
const Batch = z.object({
  operation: z.enum(["download", "upload"]),
  transfers: z.array(z.string()).optional(),
  hash_algo: z.string().optional(),
  objects: z.array(z.object({ oid: z.string(), size: z.number() })),
});
const Verified = z.object({ oid: z.string(), size: z.number() });

interface Action {
  href: string;
  header: Record<string, string>;
}
interface Told {
  oid: string;
  size: number;
  authenticated?: true;
  actions?: Record<string, Action>;
  error?: { code: number; message: string };
}

/** `path`: of the repository. */
export function addLfsRoutes(router: Router, path: string, parts: LfsParts): void {
  const { actors, lfs, storage, authorize, transfersMax = LFS_TRANSFERS_MAX } = parts;
  const bytesMax = parts.sizes.repoBytes;
  const objectBytesMax = lfsObjectBytes(parts.sizes);
  let transfers = 0;
  const at = `${path}/info/lfs`;
  router.post(`${at}/objects/batch`, batch);
  router.post(`${at}/objects/verify`, verify);
  router.get(`${at}/objects/:oid`, download);
  router.put(`${at}/objects/:oid/:size`, upload);
  // So git-lfs learns, once, that there are no locks here, and does not ask again.
  router.use(`${at}/locks`, (_request, response) => {
    answer(response, 501, { message: "Locks are not supported" });
  });
  router.use(at, () => {
    throw new ActorError("not_found", "Not found: this is no address that git-lfs asks for");
  });
  router.use(at, sayToLfs);

  async function batch(request: Request, response: Response): Promise<void> {
    const asked = Batch.parse(await question(request));
    const { operation, objects, hash_algo: algorithm = "sha256" } = asked;
    if (algorithm !== "sha256") {
      throw new ActorError("conflict", "Cannot use hash_algo: objects are named by SHA-256 here");
    }
    if (objects.length > LFS_BATCH_MAX) {
      const text = `Cannot answer: expected at most ${LFS_BATCH_MAX} objects`;
      throw new ActorError("body_too_large", text);
    }
    const writing = operation === "upload";
    const valid = objects.filter((object) => faultOf(object) === undefined);
    const oids = valid.map(({ oid }) => oid);
    const named = { writing, id: "git_lfs_batch", end: "objects/batch" };
    const { used, signal } = await authorize(
      request,
      response,
      named,
      async (id, address, left) => {
        const asked = { address, oids, bytesMax };
        const found = await actors.call(repo, id, "findLfsObjects", asked, { signal: left });
        return { address, ...found };
      },
    );
    if (writing) checkOpen(used);
    const known = new Map(used.objects.map(({ oid, bytes }) => [oid, bytes]));
    const header = { Authorization: request.get("authorization") ?? "" };
    const base = `${originOf(request)}${baseOf(used.address)}`;
    const action = (end: string): Action => ({ href: `${base}/${end}`, header });
    let { room, places } = used;
    let ofAccount = writing ? await storage.room(used.address.accountId, signal) : 0;
    const told = objects.map(({ oid, size }): Told => {
      const fault = faultOf({ oid, size });
      if (fault) return { oid, size, error: { code: 422, message: fault } };
      const bytes = known.get(oid);
      if (bytes !== undefined && bytes !== size) {
        const message = `Its size is ${bytes}`;
        return { oid, size, error: { code: 422, message } };
      }
      if (!writing) {
        if (bytes === undefined) {
          return { oid, size, error: { code: 404, message: "Object does not exist" } };
        }
        return {
          oid,
          size,
          authenticated: true,
          actions: { download: action(`objects/${oid}`) },
        };
      }
      if (bytes !== undefined) return { oid, size };
      room -= size;
      places -= 1;
      ofAccount -= size;
      if (ofAccount < 0) {
        const message = `The account would have too much: it may have ${storage.bytesMax} bytes in repositories`;
        return { oid, size, error: { code: 507, message } };
      }
      if (room < 0 || places < 0) {
        const message = `The repository would be too large: it may have ${bytesMax} bytes`;
        return { oid, size, error: { code: 507, message } };
      }
      const actions = {
        upload: action(`objects/${oid}/${size}`),
        verify: action("objects/verify"),
      };
      return { oid, size, authenticated: true, actions };
    });
    answer(response, 200, { transfer: "basic", objects: told, hash_algo: "sha256" });
  }

  async function verify(request: Request, response: Response): Promise<void> {
    const { oid, size } = Verified.parse(await question(request));
    const fault = faultOf({ oid, size });
    if (fault) throw new ActorError("content_differs", `Cannot verify: ${fault}`);
    const named = { writing: true, id: "git_lfs_verify", end: "objects/verify" };
    const { used } = await authorize(request, response, named, (id, address, signal) =>
      actors.call(repo, id, "findLfsObjects", { address, oids: [oid] }, { signal }),
    );
    const [found] = used.objects;
    if (!found) throw new ActorError("not_found", "Object does not exist");
    if (found.bytes !== size) {
      throw new ActorError("content_differs", `Cannot verify: its size is ${found.bytes}`);
    }
    answer(response, 200, { oid, size });
  }

  async function download(request: Request, response: Response): Promise<void> {
    const { oid = "" } = request.params as { oid?: string };
    const oids = LfsObject.shape.oid.safeParse(oid).success ? [oid] : [];
    const named = { writing: false, id: "git_lfs_download", end: "objects/{oid}" };
    const { used, signal } = await authorize(
      request,
      response,
      named,
      async (id, address, left) => ({
        address,
        ...(await actors.call(repo, id, "findLfsObjects", { address, oids }, { signal: left })),
      }),
    );
    const [found] = used.objects;
    if (!found) throw new ActorError("not_found", "Object does not exist");
    await transferring(response, async () => {
      const named = {
        tag: oid,
        bytes: found.bytes,
        type: "application/octet-stream",
        read: (start: number, end: number) =>
          lfs.read(used.address.accountId, found, { start, end }, signal),
      };
      await answerRanged(request, response, named, signal);
    });
  }

  async function upload(request: Request, response: Response): Promise<void> {
    const { oid = "", size: digits = "" } = request.params as { oid?: string; size?: string };
    const size = /^\d{1,15}$/.test(digits) ? Number(digits) : Number.NaN;
    const fault = faultOf({ oid, size });
    const named = { writing: true, id: "git_lfs_upload", end: "objects/{oid}/{size}" };
    const { used, signal } = await authorize(
      request,
      response,
      named,
      async (id, address, left) => {
        const oids = fault ? [] : [oid];
        const found = await actors.call(
          repo,
          id,
          "findLfsObjects",
          { address, oids, bytesMax },
          { signal: left },
        );
        return { id, address, ...found };
      },
    );
    checkOpen(used);
    if (fault) throw new ActorError("content_differs", `Cannot store: ${fault}`);
    if (size > used.room || used.places < 1) {
      const text = `Cannot store: the repository would have more than ${bytesMax} bytes`;
      throw new ActorError("storage_full", text);
    }
    const { id, address } = used;
    await transferring(response, async () => {
      const body = gitBody(request, { bytesMax: objectBytesMax });
      try {
        const object = { oid, bytes: size };
        const held = await lfs.put(address.accountId, object, body, signal);
        // From here on the client's leaving changes nothing.
        await actors.call(repo, id, "nameLfsObjects", {
          address,
          objects: [heldNow(held)],
          bytesMax,
        });
      } finally {
        // Whatever was refused before its end is not read on.
        body.destroy();
      }
    });
    response.status(200).end();
  }

  /** Bounds the transfers, because each holds pieces in memory. */
  async function transferring(response: Response, transfer: () => Promise<void>): Promise<void> {
    if (transfers >= transfersMax) {
      const text = "Cannot transfer: too many large files are on their way here";
      throw new ActorError("busy", text, { retryAfterS: 2 });
    }
    transfers += 1;
    try {
      await transfer();
    } finally {
      transfers -= 1;
    }
    if (response.destroyed) throw new ActorError("cancelled", "The client has left");
  }

  /** Why nothing can be stored under this name. */
  function faultOf({ oid, size }: { oid: string; size: number }): string | undefined {
    if (!LfsObject.shape.oid.safeParse(oid).success) {
      return "Expected an oid of 64 lower-case hex characters";
    }
    if (!Number.isSafeInteger(size) || size < 0) return "Expected a size in whole bytes";
    return size > objectBytesMax ? `Expected at most ${objectBytesMax} bytes` : undefined;
  }

  function originOf(request: Request): string {
    return parts.publicUrl ?? `${request.protocol}://${request.get("host")}`;
  }
}

const baseOf = ({ accountId, namespace, name }: RepoAddress) =>
  `/git/${accountId}/${namespace}/${name}.git/info/lfs`;

function checkOpen({ readOnly, status }: { readOnly: boolean; status: string }): void {
  if (status === "importing") {
    throw new ActorError("import_in_progress", "The repository is being imported");
  }
  if (readOnly) throw new ActorError("forbidden", "The repository is read-only");
}

async function question(request: Request): Promise<unknown> {
  const type = request.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== TYPE && type !== "application/json") {
    throw new ActorError("unsupported_media_type", `Cannot read body: expected ${TYPE}`);
  }
  return readJson(await wholeBody(request, LFS_QUESTION_BYTES_MAX));
}

function answer(response: Response, status: number, body: object): void {
  response.status(status).set("Cache-Control", "no-store");
  response.setHeader("Content-Type", TYPE);
  response.end(JSON.stringify(body));
}

/** As git-lfs reads it: docs/api/batch.md of git-lfs, "Response Errors". */
const sayToLfs: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  const locals = localsOf(response);
  const known = refusalOf(error);
  locals.refusal = known.code;
  if (known.code === "internal_error") locals.logger.error({ err: error }, "request failed");
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status } = ERRORS[known.code];
  if (status === 401) {
    response.set({
      "LFS-Authenticate": 'Basic realm="git"',
      "WWW-Authenticate": 'Basic realm="git", charset="UTF-8"',
    });
  }
  if (status === 429 || status === 503) {
    response.set("Retry-After", String(known.details.retryAfterS ?? 1));
  }
  answer(response, status, { message: known.message, request_id: locals.requestId });
};

function refusalOf(error: unknown): ActorError {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues;
    const text = `Cannot accept /${issue?.path.join("/") ?? ""}: ${issue?.message ?? "wrong"}`;
    return new ActorError("invalid_request", text);
  }
  if (error instanceof ActorError && error.code !== "internal_error") return error;
  return new ActorError("internal_error", "A fault on our side; try again later");
}
