/** Looks at what a push brought before anything can refer to it: sizes, the tips' types, how deep its directories are. */
import { open, readFile, stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import {
  FILE_BYTES_MAX,
  PUSH_TREES_MAX,
  TREE_DEPTH_MAX,
  TREE_DEPTH_TRUSTED,
} from "../../schemas/git-limits.ts";
import { startGit } from "./git-process.ts";
import { countIn, INDEX_HEAD_BYTES, type PackedObject, PackIndex, readPack } from "./pack-file.ts";
import type { PackFiles } from "./pack-store.ts";
import { measureTreeDepth } from "./tree-depth.ts";

/** Where git finds the new objects alone, and where it finds them with those that were there. */
export interface Places {
  cwd: string;
  alone: Readonly<Record<string, string>>;
  together: Readonly<Record<string, string>>;
}

export interface Inspected {
  /** Why nothing of it may be used. */
  fault?: string;
  /** Types of those that were asked for and are in the pack. */
  types: Map<string, string>;
}

/** Packs up to this size are read here: it saves a process. */
const SMALL_OBJECTS = 200;
const SMALL_BYTES = 1024 * 1024;

const TOO_MANY = "it has too many directories; push its history in parts";

export async function inspectPack(
  files: PackFiles,
  places: Places,
  tips: ReadonlySet<string>,
  signal: AbortSignal,
  { treesMax = PUSH_TREES_MAX } = {},
): Promise<Inspected> {
  const types = new Map<string, string>();
  const trees: string[] = [];
  let fault: string | undefined;
  for await (const { id, type, bytes } of objectsOf(files, places, signal)) {
    if (bytes > FILE_BYTES_MAX) {
      fault ??= `object ${id} has ${bytes} bytes, past ${FILE_BYTES_MAX}`;
    }
    if (tips.has(id)) types.set(id, type);
    if (type === "tree") trees.push(id);
    if (trees.length > treesMax) return { types, fault: TOO_MANY };
  }
  // Fewer cannot be deeper.
  if (fault === undefined && trees.length > TREE_DEPTH_TRUSTED) {
    const depth = await measureTreeDepth(files, places, trees, signal);
    if (depth === undefined) fault = TOO_MANY;
    else if (depth > TREE_DEPTH_MAX) {
      fault = `its directories are ${depth} deep, past ${TREE_DEPTH_MAX}`;
    }
  }
  return { types, ...(fault !== undefined && { fault }) };
}

async function* objectsOf(
  files: PackFiles,
  places: Places,
  signal: AbortSignal,
): AsyncGenerator<PackedObject, void, undefined> {
  const { size } = await stat(files.pack);
  if (size <= SMALL_BYTES && (await countObjects(files)) <= SMALL_OBJECTS) {
    const [pack, index] = await Promise.all([readFile(files.pack), readFile(files.index)]);
    yield* readPack(pack, new PackIndex(index));
  } else yield* listedByGit(places, signal);
}

async function countObjects({ index }: PackFiles): Promise<number> {
  await using file = await open(index);
  const head = Buffer.alloc(INDEX_HEAD_BYTES);
  await file.read(head, 0, head.length, 0);
  return countIn(head);
}

async function* listedByGit({ cwd, alone }: Places, signal: AbortSignal) {
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
    // Whoever reads may have seen enough.
    if (!ended) leave.abort();
  }
  const { code, stderr } = await git.exit;
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`Cannot list objects of a push: ${stderr}`);
}
