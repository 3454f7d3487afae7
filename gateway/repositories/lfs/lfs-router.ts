/**
 * Serves Git LFS, which stores large files beside the objects of a repository. Files are transferred by the batch API
 * with transfers of the kind `basic`.
 */
import type { Router } from "express";
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { lfsObjectBytes, repoTooLarge } from "../../../schemas/repositories/git-sizes.ts";
import { LfsObject } from "../../../schemas/repositories/lfs.ts";
import { LFS_OBJECTS_MAX } from "../../../schemas/repositories/limits.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import { answerRanged } from "../../http/ranged-answer.ts";
import { gitBody } from "../git/git-body.ts";
import { type Exchange, exchangeOf, nameRoute } from "../git/git-exchange.ts";
import { heldNow } from "../packs/pack-store.ts";
import { readLfsRequest, sendLfs, sendLfsError } from "./lfs-answers.ts";
import { batch } from "./lfs-batch.ts";
import { createLock, listLocks, removeLock, verifyLocks } from "./lfs-locks.ts";
import { checkWritable, type LfsParts, objectFault } from "./lfs-parts.ts";
import { downloadMsMax, TransferSlots } from "./transfer-slots.ts";

interface LfsEndpoint {
  /** The name of the endpoint in logs and metrics. */
  id: string;
  method: "get" | "post" | "put";
  /** The path below `info/lfs`, with parameters in braces. */
  path: string;
  handle(parts: LfsParts): (http: Exchange) => Promise<void>;
}

const ENDPOINTS: readonly LfsEndpoint[] = [
  { id: "git_lfs_batch", method: "post", path: "objects/batch", handle: batch },
  { id: "git_lfs_verify", method: "post", path: "objects/verify", handle: verify },
  { id: "git_lfs_download", method: "get", path: "objects/{oid}", handle: download },
  { id: "git_lfs_create_lock", method: "post", path: "locks", handle: createLock },
  { id: "git_lfs_list_locks", method: "get", path: "locks", handle: listLocks },
  { id: "git_lfs_verify_locks", method: "post", path: "locks/verify", handle: verifyLocks },
  { id: "git_lfs_remove_lock", method: "post", path: "locks/{lock_id}/unlock", handle: removeLock },
  { id: "git_lfs_upload", method: "put", path: "objects/{oid}/{size}", handle: upload },
];

/** Adds the endpoints of Git LFS below the path of a repository. */
export function addLfsRoutes(
  router: Router,
  repository: string,
  { transfersMax, ...parts }: Omit<LfsParts, "transfers"> & { transfersMax?: number | undefined },
): void {
  const at = `${repository}/info/lfs`;
  const shared = { ...parts, transfers: new TransferSlots(transfersMax) };
  for (const { id, method, path, handle } of ENDPOINTS) {
    const answer = handle(shared);
    const pattern = path.replace(/\{(\w+)\}/g, ":$1");
    router[method](`${at}/${pattern}`, (request, response) => {
      nameRoute(response, id, `info/lfs/${path}`);
      return answer(exchangeOf(request, response));
    });
  }
  router.use(at, () => {
    throw new ActorError("not_found", "Not found: this is no address that git-lfs asks for");
  });
  router.use(at, sendLfsError);
}

const Verified = z.object({ oid: z.string(), size: z.number() });

function verify(parts: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const { request, response, signal } = http;
    const { oid, size } = Verified.parse(await readLfsRequest(request));
    const fault = objectFault(parts, { oid, size });
    if (fault) throw new ActorError("content_differs", `Cannot verify: ${fault}`);
    const used = await parts.access.authorize(http, "git-receive-pack", (id, address) =>
      parts.actors.call(repo, id, "findLfsObjects", { address, oids: [oid] }, { signal }),
    );
    const [found] = used.objects;
    if (!found) throw new ActorError("not_found", "Object does not exist");
    if (found.bytes !== size) {
      throw new ActorError("content_differs", `Cannot verify: its size is ${found.bytes}`);
    }
    sendLfs(response, 200, { oid, size });
  };
}

function download({ access, actors, lfs, transfers }: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const { request, response, signal } = http;
    const { oid = "" } = request.params as { oid?: string };
    const oids = LfsObject.shape.oid.safeParse(oid).success ? [oid] : [];
    const { accountId, objects } = await access.authorize(
      http,
      "git-upload-pack",
      async (id, address) => ({
        accountId: address.accountId,
        ...(await actors.call(repo, id, "findLfsObjects", { address, oids }, { signal })),
      }),
    );
    const [found] = objects;
    if (!found) throw new ActorError("not_found", "Object does not exist");
    const { bytes } = found;
    const transfer = { accountId, signal, msMax: downloadMsMax(bytes) };
    await transfers.run(response, transfer, async (inTime) => {
      const read = (start: number, end: number) =>
        lfs.read(accountId, found, { start, end }, inTime);
      const content = { tag: oid, bytes, type: "application/octet-stream", read };
      await answerRanged(request, response, content, inTime);
    });
  };
}

function upload(parts: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const { actors, access, lfs, sizes, transfers } = parts;
    const { request, response, signal } = http;
    const { oid = "", size: digits = "" } = request.params as { oid?: string; size?: string };
    const size = /^\d{1,15}$/.test(digits) ? Number(digits) : Number.NaN;
    const fault = objectFault(parts, { oid, size });
    const bytesMax = sizes.repoBytes;
    const used = await access.authorize(http, "git-receive-pack", async (id, address) => {
      const query = { address, oids: fault ? [] : [oid], bytesMax };
      const found = await actors.call(repo, id, "findLfsObjects", query, { signal });
      return { id, address, ...found };
    });
    checkWritable(used);
    if (fault) throw new ActorError("content_differs", `Cannot store: ${fault}`);
    if (used.places < 1) {
      const text = `Cannot store: the repository may have ${LFS_OBJECTS_MAX} large files`;
      throw new ActorError("storage_full", text);
    }
    if (size > used.room) {
      const text = `Cannot store: ${repoTooLarge(bytesMax - used.room, bytesMax)}`;
      throw new ActorError("storage_full", text);
    }
    const { id, address } = used;
    // The server limits the time of an upload, as of any request.
    await transfers.run(response, { accountId: address.accountId, signal }, async () => {
      const body = gitBody(request, { bytesMax: lfsObjectBytes(sizes) });
      try {
        const object = { oid, bytes: size };
        const held = await lfs.put(address.accountId, object, body, signal);
        // From here on the upload is completed even if the client leaves.
        const named = { address, objects: [heldNow(held)], bytesMax };
        await actors.call(repo, id, "nameLfsObjects", named);
      } finally {
        // The rest of a refused body is only discarded.
        body.destroy();
      }
    });
    response.status(200).end();
  };
}
