/**
 * Inspects a pushed pack before any ref can name its objects: sizes, the types of tips, and the depth of directories.
 */
import { createInterface } from "node:readline";
import {
  fileTooLarge,
  GIT_SIZE_SETTINGS,
  GIT_SIZES,
  type GitSizes,
  inflatedBytes,
} from "../../../schemas/repositories/git-sizes.ts";
import { PUSH_TREES_MAX, TREE_DEPTH_MAX } from "../../../schemas/repositories/limits.ts";
import { startGit } from "../process/git-process.ts";
import { pathOf } from "./object-path.ts";
import { countIn, deltaBytesIn, type PackedObject, PackIndex, readPack } from "./pack-file.ts";
import type { PackFiles } from "./pack-store.ts";
import { measureTreeDepth, measureWholeDepth, type ObjectFolders } from "./tree-depth.ts";

/** A push with at most this many new directories cannot be deep, so its depth is not measured. */
export const TREE_DEPTH_TRUSTED = 32;
/**
 * A pack whose content is in memory (`whole`) is read without git, which saves a process, if it also has at most
 * READ_OBJECTS_MAX objects and READ_DELTA_BYTES_MAX bytes of deltas.
 */
const READ_OBJECTS_MAX = 200;
export const READ_DELTA_BYTES_MAX = 1024 * 1024;

interface Inspected {
  /** The reason to refuse the whole pack. */
  fault?: string;
  /** The types of those `tips` that are in the pack. */
  types: Map<string, string>;
  /** The greatest depth that the directory tree can have with the new objects. Its real depth may be smaller. */
  treeDepth: number;
}

const TOO_MANY = "it has too many directories; push its history in parts";

/** Inspects a pack. `below` is the greatest depth that the stored directories can have. */
export async function inspectPack(
  files: PackFiles,
  folders: ObjectFolders,
  tips: ReadonlySet<string>,
  signal: AbortSignal,
  {
    treesMax = PUSH_TREES_MAX,
    below = 0,
    known = [],
    sizes = GIT_SIZES,
    deltaBytesMax = READ_DELTA_BYTES_MAX,
  }: {
    deltaBytesMax?: number;
    treesMax?: number;
    below?: number;
    /** Tips of the history before the push. */
    known?: Iterable<string>;
    sizes?: Pick<GitSizes, "fileBytes" | "repoBytes">;
  } = {},
): Promise<Inspected> {
  const types = new Map<string, string>();
  const trees: string[] = [];
  const inflatedMax = inflatedBytes(sizes);
  let inflated = 0;
  let fault: string | undefined;
  let large: PackedObject | undefined;
  for await (const { id, type, bytes } of objectsOf(files, folders, signal, deltaBytesMax)) {
    if (bytes > sizes.fileBytes) large ??= { id, type, bytes };
    inflated += bytes;
    if (inflated > inflatedMax) {
      fault ??= `its objects have more than ${inflatedMax} bytes when they are unpacked`;
    }
    if (tips.has(id)) types.set(id, type);
    if (type === "tree") trees.push(id);
    if (trees.length > treesMax) return { types, fault: TOO_MANY, treeDepth: below };
  }
  if (large) {
    const path =
      large.type === "blob" && (await pathOf(large.id, folders, { tips, known }, signal));
    fault = path
      ? fileTooLarge(path, large.bytes, sizes.fileBytes)
      : `object ${large.id} has ${large.bytes} bytes, more than ${sizes.fileBytes} (${GIT_SIZE_SETTINGS.fileBytes})`;
  }
  // The depth is at most the number of directories.
  let depth: number | undefined = trees.length;
  if (fault === undefined && trees.length > TREE_DEPTH_TRUSTED) {
    depth = await measureTreeDepth(files, folders, trees, signal);
  }
  let treeDepth = below + (depth ?? 0);
  // New directories may contain stored ones, so the depths are added. Only if the sum is too deep, the real depth is
  // measured.
  if (fault === undefined && depth !== undefined && depth <= TREE_DEPTH_MAX) {
    if (trees.length > 0 && treeDepth > TREE_DEPTH_MAX) {
      const { cwd, together: environment } = folders;
      depth = await measureWholeDepth(trees, { cwd, environment }, signal);
      treeDepth = Math.max(below, depth ?? 0);
    }
  }
  if (fault === undefined && depth === undefined) fault = TOO_MANY;
  else if (fault === undefined && (depth ?? 0) > TREE_DEPTH_MAX) {
    fault = `its directories are ${depth} deep, more than ${TREE_DEPTH_MAX}`;
  }
  return { types, treeDepth, ...(fault !== undefined && { fault }) };
}

async function* objectsOf(
  files: PackFiles,
  folders: ObjectFolders,
  signal: AbortSignal,
  deltaBytesMax: number,
): AsyncGenerator<PackedObject, void, undefined> {
  const { whole } = files;
  if (whole && countIn(whole.index) <= READ_OBJECTS_MAX) {
    const index = new PackIndex(whole.index);
    if (deltaBytesIn(whole.pack, index) <= deltaBytesMax) {
      yield* readPack(whole.pack, index);
      return;
    }
  }
  yield* listedByGit(folders, signal);
}

async function* listedByGit({ cwd, alone }: ObjectFolders, signal: AbortSignal) {
  const format = "--batch-check=%(objectname) %(objecttype) %(objectsize)";
  const parameters = ["cat-file", "--batch-all-objects", "--unordered", format];
  const leave = new AbortController();
  const until = AbortSignal.any([signal, leave.signal]);
  const git = startGit(parameters, { cwd, environment: alone, signal: until });
  git.stdin.end();
  let ended = false;
  try {
    for await (const line of createInterface({ input: git.stdout })) {
      const [id = "", type = "", bytes = ""] = line.split(" ");
      yield { id, type, bytes: Number(bytes) };
    }
    ended = true;
  } finally {
    // If the consumer reads no further, git is killed, and its output is discarded.
    if (!ended) {
      leave.abort();
      git.stdout.destroy();
    }
  }
  const { code, stderr } = await git.exit;
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`Cannot list objects of a push: ${stderr}`);
}
