/** Serves the File Locking API of Git LFS (docs/api/locking.md of git-lfs). */
import { z } from "zod";
import { type LfsLock, LfsLockPath } from "../../../schemas/repositories/lfs-lock.ts";
import { LFS_LOCKS_LISTED_MAX } from "../../../schemas/repositories/limits.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import type { Exchange, Service } from "../git/git-exchange.ts";
import { readLfsRequest, sendLfs } from "./lfs-answers.ts";
import type { LfsParts } from "./lfs-parts.ts";

const Create = z.object({ path: LfsLockPath });
/** Number of locks in one response. Clients that set no limit send 0, which is read as LFS_LOCKS_LISTED_MAX. */
const Limit = z.coerce
  .number()
  .int()
  .min(0)
  .default(0)
  .transform((limit) =>
    limit === 0 ? LFS_LOCKS_LISTED_MAX : Math.min(limit, LFS_LOCKS_LISTED_MAX),
  );
const Cursor = z
  .string()
  .optional()
  .transform((cursor) => (cursor === "" ? undefined : cursor));
const Listed = z.object({
  path: z.string().optional(),
  id: z.string().optional(),
  cursor: Cursor,
  limit: Limit,
});
const Verified = z.object({ cursor: Cursor, limit: Limit });
const Unlock = z.object({ force: z.boolean().default(false) });

export function createLock(parts: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const { path } = Create.parse(await readLfsRequest(http.request));
    const { id, address, client } = await opened(parts, http, "git-receive-pack");
    const input = { address, path, owner: client };
    const { lock, isNew } = await parts.actors.call(repo, id, "createLfsLock", input);
    const body = { lock: wireLock(lock) };
    if (isNew) return sendLfs(http.response, 201, body);
    const message = `"${path}" is locked already, by "${lock.owner.name}"`;
    sendLfs(http.response, 409, { ...body, message });
  };
}

export function listLocks(parts: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const { cursor, ...asked } = Listed.parse(http.request.query);
    const { locks, next } = await listed(parts, http, "git-upload-pack", { ...asked, cursor });
    sendLfs(http.response, 200, { locks: locks.map(wireLock), ...next });
  };
}

/** Lists the locks as the client's own and those of others. A client requests this list before it pushes. */
export function verifyLocks(parts: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const query = Verified.parse(await readLfsRequest(http.request));
    const { locks, client, next } = await listed(parts, http, "git-receive-pack", query);
    const isOwn = ({ owner }: LfsLock) => owner.id === client.id;
    const ours = locks.filter(isOwn).map(wireLock);
    const theirs = locks.filter((lock) => !isOwn(lock)).map(wireLock);
    sendLfs(http.response, 200, { ours, theirs, ...next });
  };
}

export function removeLock(parts: LfsParts) {
  return async (http: Exchange): Promise<void> => {
    const { force: isForced } = Unlock.parse(await readLfsRequest(http.request));
    const { lock_id: lockId } = http.request.params;
    const { id, address, client } = await opened(parts, http, "git-receive-pack");
    const removal = { address, id: String(lockId), owner: client, isForced };
    const { lock } = await parts.actors.call(repo, id, "removeLfsLock", removal);
    sendLfs(http.response, 200, { lock: wireLock(lock) });
  };
}

const opened = ({ access }: LfsParts, http: Exchange, service: Service) =>
  access.authorize(http, service, async (id, address, client) => ({ id, address, client }));

async function listed(
  parts: LfsParts,
  http: Exchange,
  service: Service,
  { cursor, ...asked }: z.output<typeof Listed> | z.output<typeof Verified>,
) {
  const { id, address, client } = await opened(parts, http, service);
  const input = { ...asked, address, after: cursor };
  const { locks, more } = await parts.actors.call(repo, id, "listLfsLocks", input);
  return { locks, client, next: more && { next_cursor: locks.at(-1)?.id } };
}

const wireLock = ({ id, path, owner, lockedAt }: LfsLock) => ({
  id,
  path,
  locked_at: new Date(lockedAt).toISOString(),
  owner: { name: owner.name },
});
