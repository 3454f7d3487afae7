/** Limits the bytes of an account's bundles in the stream of apps, so that no account fills it for the others. */
import { randomUUID } from "node:crypto";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { appKey } from "../../schemas/apps/app-names.ts";
import { ActorError } from "../../schemas/errors.ts";
import { BLOB_CHUNK_BYTES } from "../../schemas/limits.ts";
import { ACCOUNT_STREAM_SHARE } from "../../schemas/store-limits.ts";
import { SIZE_SETTINGS } from "../../schemas/store-sizes.ts";

export type RoomBlobs = Pick<BlobStore, "messagesBeneath" | "streamUse">;

interface OneApp {
  accountId: string;
  name: string;
}

/** The name of a bundle. Bundles of older versions have no size in their names. */
const BUNDLE = /\.bundle\.(?:(\d+)_)?[\w-]+$/;

/**
 * Returns a new name for a bundle. Each version has a separate blob. Otherwise the late removal of an old version could
 * delete the bundle of a newer version with the same text. The name contains the size, so that one request returns the
 * sizes of all bundles of an account.
 */
export function newBundleName({ accountId, name }: OneApp, bytes: number): string {
  return `app.${appKey(accountId, name)}.bundle.${bytes}_${randomUUID()}`;
}

/**
 * Refuses with `storage_full` if the account's bundles would fill more than ACCOUNT_STREAM_SHARE of the stream. Images
 * of agents do not count. They have a limit of their own, and the account may need a new version that deletes them. The
 * sizes come from the bus and not from a counter, so no crash makes them wrong. A bundle that a killed gateway left
 * without a version counts until its app is deleted.
 */
export async function checkAppRoom(
  blobs: RoomBlobs,
  { accountId, name }: OneApp,
  /** Bytes that will be stored in addition. */
  moreBytes: number,
): Promise<void> {
  const prefix = `app.${accountId}`;
  const { bytesMax } = await blobs.streamUse(prefix);
  const limit = Math.floor(bytesMax * ACCOUNT_STREAM_SHARE);
  let bytes = 0;
  for (const [blob, messages] of await blobs.messagesBeneath(prefix)) {
    const bundle = BUNDLE.exec(blob);
    if (!bundle) continue;
    // All messages of a blob have this size, except the last one, which may be small.
    bytes += Number(bundle[1] ?? (messages - 1) * BLOB_CHUNK_BYTES);
  }
  if (bytes + moreBytes <= limit) return;
  throw new ActorError(
    "storage_full",
    `Cannot deploy app "${name}": the bundles of the account would have ${bytes + moreBytes} bytes and may have ${limit}, a quarter of the store of apps (${SIZE_SETTINGS.apps}); delete an app that is no longer needed`,
  );
}
