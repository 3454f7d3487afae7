/** Imports the large files of an imported history from the host of its origin. */
import type { Readable } from "node:stream";
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { GIT_SIZE_SETTINGS, lfsObjectBytes } from "../../../schemas/repositories/git-sizes.ts";
import type { LfsObject } from "../../../schemas/repositories/lfs.ts";
import {
  IMPORT_RETRY_PAUSES_MS,
  LFS_BATCH_MAX,
  LFS_OBJECTS_MAX,
} from "../../../schemas/repositories/limits.ts";
import { type ImportProgress, repo as repoContract } from "../../../schemas/repositories/repo.ts";
import type { GitParts } from "../git-parts.ts";
import { pointersIn } from "../lfs/lfs-pointers.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { heldNow } from "../packs/pack-store.ts";
import { retried } from "./retried.ts";

/**
 * IMPORT_LFS_AT_ONCE limits the large files that one import fetches at the same time. IMPORT_LFS_ANSWER_BYTES_MAX
 * limits the host's response about one batch of large files.
 */
const IMPORT_LFS_AT_ONCE = 4;
const IMPORT_LFS_ANSWER_BYTES_MAX = 1024 * 1024;

/** Checks an address and fetches from it. The response's body is decoded and has at most `bytesMax` bytes. */
export type ImportFetch = (
  url: string,
  options: {
    method?: string;
    headers: Record<string, string>;
    body?: string;
    bytesMax: number;
    /** 0 returns a redirect as it is. */
    redirectsMax?: number;
    /** The account for which lookups of names count. */
    lookupOwner?: string;
    signal: AbortSignal;
  },
) => Promise<{ status: number; headers: Headers; body: Readable }>;

interface LfsImportParts extends Pick<GitParts, "actors" | "lfs" | "sizes" | "storage"> {
  fetch: ImportFetch;
  /** Pauses before a request is repeated after a 5xx. */
  retryPausesMs?: readonly number[] | undefined;
  /** Limit for the number of large files in one import. */
  lfsObjectsMax?: number | undefined;
}

const TYPE = "application/vnd.git-lfs+json";

/** The fields of a batch response that the import uses (docs/api/batch.md of git-lfs). */
const Answer = z.object({
  objects: z.array(
    z.object({
      oid: z.string(),
      actions: z
        .object({
          download: z
            .object({ href: z.string(), header: z.record(z.string(), z.string()).optional() })
            .optional(),
        })
        .optional(),
    }),
  ),
});
interface Download {
  href: string;
  header?: Record<string, string> | undefined;
}

/**
 * Imports the large files of a history. Returns a text about the files that the origin did not serve, or null. The
 * history is complete without those files. Rejects with ActorError past the limits.
 */
export async function importLfs(
  { retryPausesMs = IMPORT_RETRY_PAUSES_MS, ...given }: LfsImportParts,
  repo: OpenedRepo,
  { folder, tips, url }: { folder: string; tips: readonly string[]; url: string },
  left: AbortSignal,
  tell: (progress: ImportProgress) => void,
): Promise<string | null> {
  const failed = new AbortController();
  const signal = AbortSignal.any([left, failed.signal]);
  const fetch: ImportFetch = (address, options) => {
    const run = () => given.fetch(address, options);
    return retried(run, isServerError, { pausesMs: retryPausesMs, signal });
  };
  const parts = { ...given, fetch };
  const place = { cwd: folder, environment: { GIT_DIR: "." } };
  const { lfsObjectsMax: objectsMax = LFS_OBJECTS_MAX } = parts;
  const found = await pointersIn(place, tips, signal, { objectsMax });
  const objects = Array.from(found, ([oid, bytes]) => ({ oid, bytes }));
  if (objects.length === 0) return null;
  checkSizes(parts, repo, objects);
  let done = 0;
  const missing: string[] = [];
  for (let from = 0; from < objects.length; from += LFS_BATCH_MAX) {
    const some = objects.slice(from, from + LFS_BATCH_MAX);
    const downloads = await askFor(parts, url, some, signal);
    const waiting = some.values();
    const fetchers = Array.from({ length: IMPORT_LFS_AT_ONCE }, async () => {
      for (const object of waiting) {
        signal.throwIfAborted();
        const download = downloads.get(object.oid);
        const isThere = download && (await fetchOne(parts, repo, object, download, signal));
        if (!isThere) missing.push(object.oid);
        done += 1;
        tell({ step: "large_files", percent: Math.floor((100 * done) / objects.length) });
      }
    });
    // If one fetcher fails, the others end too, and the import keeps its slot until they have ended.
    for (const fetcher of fetchers) fetcher.catch((error: unknown) => failed.abort(error));
    await Promise.allSettled(fetchers);
    signal.throwIfAborted();
  }
  if (missing.length === 0) return null;
  return `Its host does not give ${missing.length} of ${objects.length} large files (Git LFS), such as ${missing[0]}; push them here`;
}

/** Returns whether a response is a 5xx, and closes the body of such a response. */
function isServerError({ status, body }: Awaited<ReturnType<ImportFetch>>): boolean {
  if (status >= 500) body.destroy();
  return status >= 500;
}

/** Checks the sizes of all large files before the first one is fetched. */
function checkSizes(
  { sizes }: LfsImportParts,
  { manifest }: OpenedRepo,
  objects: readonly LfsObject[],
): void {
  const most = lfsObjectBytes(sizes);
  const large = objects.find(({ bytes }) => bytes > most);
  if (large) {
    const text = `Cannot import: the large file ${large.oid} has ${large.bytes} bytes, more than ${most}`;
    throw new ActorError("limit_reached", text);
  }
  const bytes = objects.reduce((sum, object) => sum + object.bytes, manifest.bytes);
  if (bytes <= sizes.repoBytes) return;
  const text = `Cannot import: its large files have ${bytes} bytes, more than ${sizes.repoBytes} (${GIT_SIZE_SETTINGS.repoBytes})`;
  throw new ActorError("storage_full", text);
}

/**
 * Requests the download addresses of large files from the origin's host. Files that the host does not serve to
 * everybody are missing in the map; it is empty if the request fails.
 */
async function askFor(
  { fetch }: LfsImportParts,
  url: string,
  objects: readonly LfsObject[],
  signal: AbortSignal,
): Promise<Map<string, Download>> {
  const downloads = new Map<string, Download>();
  const base = `${url.replace(/\/+$/, "").replace(/\.git$/, "")}.git/info/lfs`;
  const requested = objects.map(({ oid, bytes }) => ({ oid, size: bytes }));
  try {
    const { status, body } = await fetch(`${base}/objects/batch`, {
      method: "POST",
      headers: { Accept: TYPE, "Content-Type": TYPE },
      body: JSON.stringify({ operation: "download", transfers: ["basic"], objects: requested }),
      bytesMax: IMPORT_LFS_ANSWER_BYTES_MAX,
      signal,
    });
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    if (status !== 200) return downloads;
    const answer = Answer.parse(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    for (const { oid, actions } of answer.objects) {
      if (actions?.download) downloads.set(oid, actions.download);
    }
  } catch {
    signal.throwIfAborted(); // Whatever a host answers, the history is there without.
  }
  return downloads;
}

/** Fetches and stores one large file. Returns false if the host does not send the file, or sends other content. */
async function fetchOne(
  { actors, lfs, sizes, fetch }: LfsImportParts,
  { id, address }: OpenedRepo,
  object: LfsObject,
  { href, header = {} }: Download,
  signal: AbortSignal,
): Promise<boolean> {
  if (!href.startsWith("https://")) return false;
  const content = async function* () {
    const answer = await fetch(href, { headers: header, bytesMax: object.bytes, signal });
    try {
      if (answer.status !== 200) throw new Error(`Cannot fetch large file: ${answer.status}`);
      yield* answer.body as AsyncIterable<Uint8Array>;
    } finally {
      answer.body.destroy();
    }
  };
  try {
    const stored = await lfs.put(address.accountId, object, content(), signal);
    const input = { address, objects: [heldNow(stored)], bytesMax: sizes.repoBytes };
    await actors.call(repoContract, id, "nameLfsObjects", { ...input, ofImport: true });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ActorError && error.code !== "content_differs") throw error;
    return false; // Of its host's doing.
  }
}
