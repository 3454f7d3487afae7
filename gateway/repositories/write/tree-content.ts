/** Changes entries in the content of a git tree, which may have hundreds of thousands of entries. */
import { type PlacedEntry, type RawEntry, walkTree } from "../read/read-parse.ts";

export const TREE = "40000";

/** Returns a key for a name. Names are bytes, which need not be UTF-8. */
export const keyOf = (name: Buffer) => name.toString("latin1");

/** Returns the content of a tree without the entries of these keys, and with the new entries. */
export async function changeTree(
  content: Buffer,
  removed: ReadonlySet<string>,
  added: readonly RawEntry[],
): Promise<Buffer> {
  const parts: Buffer[] = [];
  /** Begin of the unchanged entries that are not in `parts` yet. */
  let from = 0;
  const entries = added.toSorted(byOrder);
  let next = 0;
  const addBefore = (known: PlacedEntry) => {
    for (let entry = entries[next]; entry; entry = entries[next]) {
      if (byOrder(entry, known) > 0) return;
      parts.push(content.subarray(from, known.from), bytesOf(entry));
      from = known.from;
      next += 1;
    }
  };
  await walkTree(content, (known) => {
    addBefore(known);
    if (!removed.has(keyOf(known.name))) return;
    parts.push(content.subarray(from, known.from));
    from = known.to;
  });
  parts.push(content.subarray(from), ...entries.slice(next).map(bytesOf));
  return Buffer.concat(parts);
}

/** Orders entries as git does: as if a directory's name ended with a slash. */
function byOrder(one: Pick<RawEntry, "name" | "mode">, other: typeof one): number {
  const shared = Math.min(one.name.length, other.name.length);
  const order = one.name.compare(other.name, 0, shared, 0, shared);
  return order !== 0 ? order : byteAfter(one, shared) - byteAfter(other, shared);
}

const byteAfter = ({ name, mode }: Pick<RawEntry, "name" | "mode">, at: number) =>
  name[at] ?? (mode === TREE ? SLASH : 0);
const SLASH = 0x2f;

const bytesOf = ({ mode, name, hash }: RawEntry) =>
  Buffer.concat([Buffer.from(`${mode} `), name, ZERO, Buffer.from(hash, "hex")]);
const ZERO = Buffer.alloc(1);
