/** Lists the refs and packs that changed since a reader's last request, in replies that fit a message. */
import type { ManifestCursor, Pack } from "../../../schemas/repositories/repo.ts";
import { bytesOf } from "./repo-lfs.ts";
import { type LiveRepo, type RepoRows, rowsOf } from "./repo-state.ts";

/** Limit for the bytes of refs in a reply to `manifest`, past its first row. With its packs, it fits a message. */
const MANIFEST_PAGE_BYTES = 400_000;

type Row = { row: number; refs: Readonly<Record<string, string>> };

/**
 * Returns rows in the order of the changes that wrote them. A row that changes while a reader fetches page after page
 * is returned again at the end. A reader that has received all pages therefore has the current refs.
 */
export function readManifest(
  state: LiveRepo,
  rows: RepoRows,
  { after, packsAfter }: { after: ManifestCursor; packsAfter: number },
) {
  const newer = Array.from(rowsOf(rows, "refs"), ([row, { version, refs }]) => ({
    row: Number(row),
    version,
    refs,
  }))
    .filter(
      ({ row, version }) =>
        version > after.version || (version === after.version && row > after.row),
    )
    .sort((one, other) => one.version - other.version || one.row - other.row);
  const page: Row[] = [];
  let cursor = after;
  let bytes = 0;
  for (const { row, version, refs } of newer) {
    bytes += Buffer.byteLength(JSON.stringify(refs));
    if (page.length > 0 && bytes > MANIFEST_PAGE_BYTES) break;
    page.push({ row, refs });
    cursor = { version, row };
  }
  const packsWhole = packsAfter < state.packsRemovedVersion || packsAfter === 0;
  const packs: Pack[] = [];
  for (const [sha256, pack] of rowsOf(rows, "pack")) {
    if (!packsWhole && pack.version <= packsAfter) continue;
    packs.push({ sha256, bytes: pack.bytes, indexBytes: pack.indexBytes });
  }
  return {
    version: state.version,
    generation: state.generation,
    head: `refs/heads/${state.defaultBranch}`,
    readOnly: state.readOnly,
    protectedRefs: state.protectedRefs,
    status: state.status,
    shallow: state.shallow ?? [],
    treeDepth: state.treeDepth,
    bytes: bytesOf(state),
    rows: page,
    packs,
    packsWhole,
    cursor,
    done: page.length === newer.length,
  };
}
