/**
 * Measures how deeply directories are nested. Git recurses into directories during each clone, so the depth is
 * limited.
 */
import { readFile } from "node:fs/promises";
import { PUSH_TREES_MAX, TREE_DEPTH_MAX } from "../../../schemas/repositories/limits.ts";
import { batchOf } from "../process/cat-file-batch.ts";
import { feed, startGit, write } from "../process/git-process.ts";
import { PackIndex } from "./pack-file.ts";
import type { PackFiles } from "./pack-store.ts";

/** Limit for the subdirectories that one measurement finds in a push. Reading them takes some seconds. */
const TREE_EDGES_MAX = 2_000_000;

/**
 * The environments of git. With `alone`, git finds only the new objects; with `together`, also the stored objects.
 */
export interface ObjectFolders {
  cwd: string;
  alone: Readonly<Record<string, string>>;
  together: Readonly<Record<string, string>>;
}

const ID_BYTES = 20;
const BLANK = 0x20;
const DIGIT_0 = 0x30;
/** The bits of a mode that hold the type of an entry, and the type of a directory (inode(7)). */
const TYPE_BITS = 0o170000;
const DIRECTORY_TYPE = 0o040000;

/**
 * Measures the depth of a push's new directories, without stored directories in them. Returns undefined if they have
 * more than TREE_EDGES_MAX entries for directories.
 */
export async function measureTreeDepth(
  files: PackFiles,
  { cwd, alone }: ObjectFolders,
  trees: readonly string[],
  signal: AbortSignal,
): Promise<number | undefined> {
  const index = new PackIndex(await readFile(files.index));
  const children = new Map<number, Int32Array>();
  const leave = new AbortController();
  const git = startGit(["cat-file", "--batch", "--buffer"], {
    cwd,
    environment: alone,
    signal: AbortSignal.any([signal, leave.signal]),
  });
  const writing = feed(git.stdin, lines(trees));
  // It may fail before it is awaited, which would end this process.
  writing.catch(() => {});
  let edges = 0;
  try {
    for await (const { id, content } of batchOf(git.stdout)) {
      // Git is being killed, so its remaining output is ignored.
      if (edges > TREE_EDGES_MAX) continue;
      const inside = childrenIn(content, index);
      edges += inside.length;
      if (edges > TREE_EDGES_MAX) leave.abort();
      children.set(index.find(Buffer.from(id, "hex")), inside);
    }
  } finally {
    leave.abort();
    await writing;
    await git.exit;
  }
  signal.throwIfAborted();
  if (edges > TREE_EDGES_MAX) return undefined;
  if (children.size !== trees.length)
    throw new Error("Cannot measure directories: git stopped unexpectedly");
  return deepest(children);
}

/**
 * Measures the depth of directories with all directories in them, new or stored. Goes down level by level and reads
 * each directory once. Returns undefined past `treesMax` or `treeEdgesMax`.
 */
export async function measureWholeDepth(
  trees: readonly string[],
  { cwd, environment }: { cwd: string; environment: Readonly<Record<string, string>> },
  signal: AbortSignal,
  { treesMax = PUSH_TREES_MAX, treeEdgesMax = TREE_EDGES_MAX } = {},
): Promise<number | undefined> {
  const children = new Map<string, string[]>();
  let edges = 0;
  let level = [...new Set(trees)];
  if (level.length === 0) return 0;
  const leave = new AbortController();
  const git = startGit(["cat-file", "--batch"], {
    cwd,
    environment,
    signal: AbortSignal.any([signal, leave.signal]),
  });
  await using _ended = {
    async [Symbol.asyncDispose]() {
      leave.abort();
      // Unread output would keep `exit` waiting for ever.
      git.stdout.destroy();
      await git.exit;
    },
  };
  const answers = batchOf(git.stdout);
  // Each iteration descends one level, so the depth limit bounds the loop.
  for (let levels = 1; level.length > 0; levels++) {
    if (levels > TREE_DEPTH_MAX) return TREE_DEPTH_MAX + 1;
    if (children.size + level.length > treesMax) return undefined;
    const writing = write(git.stdin, lines(level));
    // It may fail before it is awaited, which would end this process.
    writing.catch(() => {});
    for (const _ of level) {
      const { value, done } = await answers.next();
      signal.throwIfAborted();
      if (done) throw new Error("Cannot measure directories: git stopped unexpectedly");
      const inside = directoriesIn(value.content).map((child) => child.toString("hex"));
      edges += inside.length;
      if (edges > treeEdgesMax) return undefined;
      children.set(value.id, inside);
    }
    await writing;
    const next = new Set([...level].flatMap((id) => children.get(id) ?? []));
    level = [...next].filter((id) => !children.has(id));
  }
  return deepest(children);
}

async function* lines(ids: readonly string[]): AsyncGenerator<Buffer> {
  const LINES = 1_000;
  for (let from = 0; from < ids.length; from += LINES) {
    yield Buffer.from(`${ids.slice(from, from + LINES).join("\n")}\n`);
  }
}

/** Returns those directories in a tree that the pack contains, by their positions in its index. */
function childrenIn(tree: Buffer, index: PackIndex): Int32Array {
  const folders = directoriesIn(tree).map((id) => index.find(id));
  return Int32Array.from(folders.filter((place) => place >= 0));
}

/** Ids of the directories in a tree. */
function directoriesIn(tree: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < tree.length; ) {
    const idAt = tree.indexOf(0, at) + 1;
    if (idAt === 0) break;
    if (isDirectory(tree, at)) found.push(tree.subarray(idAt, idAt + ID_BYTES));
    at = idAt + ID_BYTES;
  }
  return found;
}

/**
 * Returns whether an entry is a directory to git, which ignores all other bits of a mode: `040000` and `40755` are
 * directories too. The strict check of a pack accepts both.
 */
function isDirectory(tree: Buffer, at: number): boolean {
  let mode = 0;
  for (let next = at; next < tree.length && tree[next] !== BLANK; next++) {
    mode = (mode << 3) | ((tree[next] ?? 0) - DIGIT_0);
  }
  return (mode & TYPE_BITS) === DIRECTORY_TYPE;
}

/** Returns the greatest depth. Trees are named by their content, so no tree is below itself. */
function deepest<T>(children: ReadonlyMap<T, ArrayLike<T>>): number {
  const depths = new Map<T, number>();
  let deepest = 0;
  for (const root of children.keys()) {
    if (depths.has(root)) continue;
    const path = [{ tree: root, next: 0, depth: 1 }];
    for (let last = path.at(-1); last; last = path.at(-1)) {
      const child = children.get(last.tree)?.[last.next];
      if (child === undefined) {
        depths.set(last.tree, last.depth);
        deepest = Math.max(deepest, last.depth);
        path.pop();
        continue;
      }
      const below = depths.get(child);
      if (below === undefined) path.push({ tree: child, next: 0, depth: 1 });
      else {
        last.depth = Math.max(last.depth, below + 1);
        last.next += 1;
      }
    }
  }
  return deepest;
}
