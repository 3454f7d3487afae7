/**
 * Writes the files of a view, a folder that shows git one version of a repository, and checks that all of them are
 * there.
 */
import { randomBytes } from "node:crypto";
import { access, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { entriesOf, isCode, OBJECTS_FROM_VIEW } from "./cache-files.ts";
import type { Manifest } from "./manifest-reader.ts";

/**
 * The file of a view that holds its `madeId`. An inode number could not identify a view, because file systems reuse
 * it immediately.
 */
const MADE_ID = "made-id";
const MADE_ID_BYTES = 12;

/**
 * The file with attributes that override those of `.gitattributes` in any commit. `git archive` would expand
 * `$Format:…$` and `$Id$` in files, and change line ends and encodings, so that an archive of a small repository could
 * fill the disk. No other command that runs in a view reads these attributes.
 */
const ATTRIBUTES = join("info", "attributes");
/** An encoding must not be false, only unspecified. If this changes, `ARCHIVE_VERSION` must change too. */
const AS_STORED = "* -export-subst -ident -text -eol !working-tree-encoding\n";

export async function writeView(
  cwd: string,
  { head, shallow }: Manifest,
  refs: Manifest["refs"],
): Promise<void> {
  await mkdir(join(cwd, "refs"), { recursive: true });
  await mkdir(join(cwd, "info"), { recursive: true });
  await Promise.all([
    writeFile(join(cwd, "HEAD"), `ref: ${head}\n`),
    writeFile(join(cwd, ATTRIBUTES), AS_STORED),
    writeFile(join(cwd, MADE_ID), randomBytes(MADE_ID_BYTES).toString("hex")),
    writeFile(join(cwd, "packed-refs"), packedRefs(refs)),
    ...(shallow.length > 0 ? [writeFile(join(cwd, "shallow"), `${shallow.join("\n")}\n`)] : []),
  ]);
}

/**
 * Returns the identity of a view, or undefined if one of its files is missing or an older version wrote its attributes.
 * The identity includes the folder of packs: other processes may empty and refill that folder while the view stays.
 */
export async function wholeView(cwd: string): Promise<string | undefined> {
  try {
    const [madeId, packs, attributes] = await Promise.all([
      readFile(join(cwd, MADE_ID), "latin1"),
      stat(join(cwd, OBJECTS_FROM_VIEW, "pack"), { bigint: true }),
      readFile(join(cwd, ATTRIBUTES), "latin1"),
      access(join(cwd, "HEAD")),
      access(join(cwd, "packed-refs")),
    ]);
    if (attributes !== AS_STORED) return undefined;
    return `${madeId} ${packs.ino} ${packs.birthtimeNs}`;
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

export async function hasPacks(cwd: string, { packs }: Manifest): Promise<boolean> {
  const linked = new Set(await entriesOf(join(cwd, OBJECTS_FROM_VIEW, "pack")));
  return packs.values().every(({ sha256 }) => {
    return linked.has(`pack-${sha256}.idx`) && linked.has(`pack-${sha256}.pack`);
  });
}

/** Returns the content of git's file of refs. */
export function packedRefs(refs: ReadonlyMap<string, string>): string {
  const names = [...refs.keys()];
  // Git expects refs in byte order, which equals the order of `sort` for ASCII names. Without the header, git sorts
  // the refs itself.
  const isAscii = names.every((name) => /^[\x20-\x7e]*$/.test(name));
  const lines = names.sort().map((name) => `${refs.get(name)} ${name}\n`);
  return `${isAscii ? "# pack-refs with: sorted \n" : ""}${lines.join("")}`;
}
