/** Serves the batch API of Git LFS, which tells a client which objects to transfer, and where. */
import type { Request } from "express";
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { GIT_SIZE_SETTINGS, repoTooLarge } from "../../../schemas/repositories/git-sizes.ts";
import { LFS_BATCH_MAX, LFS_OBJECTS_MAX } from "../../../schemas/repositories/limits.ts";
import { type RepoAddress, repo } from "../../../schemas/repositories/repo.ts";
import type { Exchange } from "../git/git-exchange.ts";
import { readLfsRequest, sendLfs } from "./lfs-answers.ts";
import { checkWritable, type LfsParts, objectFault, serviceFor } from "./lfs-parts.ts";

/** The fields of a batch request that are used here. Clients may send further fields for other servers. */
const Batch = z.object({
  operation: z.enum(["download", "upload"]),
  transfers: z.array(z.string()).optional(),
  hash_algo: z.string().optional(),
  objects: z.array(z.object({ oid: z.string(), size: z.number() })),
});

interface BatchObject {
  oid: string;
  size: number;
}
interface Action {
  href: string;
  header: Record<string, string>;
}
interface BatchObjectAnswer extends BatchObject {
  authenticated?: true;
  actions?: Record<string, Action>;
  error?: { code: number; message: string };
}

/** Returns the action for an address below the repository's `info/lfs`. */
type ActionAt = (end: string) => Action;

export function batch(parts: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const { request, response, signal } = http;
    const { operation, objects } = checkBatch(Batch.parse(await readLfsRequest(request)));
    const valid = objects.filter((object) => objectFault(parts, object) === undefined);
    const oids = valid.map(({ oid }) => oid);
    const bytesMax = parts.sizes.repoBytes;
    const writing = operation === "upload";
    const used = await parts.access.authorize(http, serviceFor(writing), async (id, address) => {
      const query = { address, oids, bytesMax };
      const found = await parts.actors.call(repo, id, "findLfsObjects", query, { signal });
      return { address, ...found };
    });
    if (writing) checkWritable(used);
    const known = new Map(used.objects.map(({ oid, bytes }) => [oid, bytes]));
    const actionAt = actionsOf(parts, request, used.address);
    const room = writing ? await roomOf(parts, used, signal) : undefined;
    const results = objects.map((object): BatchObjectAnswer => {
      const fault = objectFault(parts, object) ?? sizeFault(object, known);
      if (fault) return refused(object, 422, fault);
      return room ? upload(object, { known, room, actionAt }) : download(object, known, actionAt);
    });
    sendLfs(response, 200, { transfer: "basic", objects: results, hash_algo: "sha256" });
  };
}

function checkBatch(asked: z.output<typeof Batch>): z.output<typeof Batch> {
  const { objects, hash_algo: algorithm = "sha256" } = asked;
  if (algorithm !== "sha256") {
    throw new ActorError("conflict", "Cannot use hash_algo: objects are named by SHA-256 here");
  }
  if (objects.length > LFS_BATCH_MAX) {
    const text = `Cannot answer: expected at most ${LFS_BATCH_MAX} objects`;
    throw new ActorError("body_too_large", text);
  }
  return asked;
}

function sizeFault(
  { oid, size }: BatchObject,
  known: ReadonlyMap<string, number>,
): string | undefined {
  const bytes = known.get(oid) ?? size;
  return bytes === size ? undefined : `Its size is ${bytes}`;
}

const refused = ({ oid, size }: BatchObject, code: number, message: string): BatchObjectAnswer => ({
  oid,
  size,
  error: { code, message },
});

function download(
  object: BatchObject,
  known: ReadonlyMap<string, number>,
  actionAt: ActionAt,
): BatchObjectAnswer {
  const { oid, size } = object;
  if (!known.has(oid)) return refused(object, 404, "Object does not exist");
  return { oid, size, authenticated: true, actions: { download: actionAt(`objects/${oid}`) } };
}

/**
 * Returns the upload action of an object, and subtracts its size from the free space. A stored object needs no
 * action.
 */
function upload(
  object: BatchObject,
  { known, room, actionAt }: { known: ReadonlyMap<string, number>; room: Room; actionAt: ActionAt },
): BatchObjectAnswer {
  const { oid, size } = object;
  if (known.has(oid)) return { oid, size };
  const fault = room.take(size);
  if (fault) return refused(object, 507, fault);
  const actions = {
    upload: actionAt(`objects/${oid}/${size}`),
    verify: actionAt("objects/verify"),
  };
  return { oid, size, authenticated: true, actions };
}

interface Room {
  /** Subtracts the size of another object from the free space. Returns why the object does not fit, or undefined. */
  take(size: number): string | undefined;
}

async function roomOf(
  { storage, sizes }: LfsParts,
  { address, room, places }: { address: RepoAddress; room: number; places: number },
  signal: AbortSignal,
): Promise<Room> {
  const bytes = sizes.repoBytes - room;
  let ofRepo = room;
  let free = places;
  let ofAccount = await storage.freeBytes(address.accountId, signal);
  return {
    take(size) {
      ofRepo -= size;
      free -= 1;
      ofAccount -= size;
      if (ofAccount < 0) {
        return `The account would have too much: it may have ${storage.bytesMax} bytes in repositories (${GIT_SIZE_SETTINGS.accountBytes})`;
      }
      if (free < 0) return `The repository may have ${LFS_OBJECTS_MAX} large files`;
      return ofRepo < 0 ? `Cannot store: ${repoTooLarge(bytes, sizes.repoBytes)}` : undefined;
    },
  };
}

function actionsOf({ publicUrl }: LfsParts, request: Request, address: RepoAddress): ActionAt {
  const { accountId, namespace, name } = address;
  const origin = publicUrl ?? `${request.protocol}://${request.get("host")}`;
  const base = `${origin}/git/${accountId}/${namespace}/${name}.git/info/lfs`;
  const header = { Authorization: request.get("authorization") ?? "" };
  return (end) => ({ href: `${base}/${end}`, header });
}
