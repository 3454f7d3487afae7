/** Measures how many new directories of a push lie below each other: git goes down them by recursion, once a clone. */
import { readFile } from "node:fs/promises";
import { TREE_EDGES_MAX } from "../../schemas/git-limits.ts";
import { feed, startGit } from "./git-process.ts";
import type { Places } from "./inspect-pack.ts";
import { PackIndex } from "./pack-file.ts";
import type { PackFiles } from "./pack-store.ts";

const ID_BYTES = 20;
/** How an entry that is a directory begins; git refuses any other way to write it. */
const DIRECTORY = Buffer.from("40000 ");
const NEWLINE = 10;

/** Undefined where there are more of them in each other than are looked at. */
export async function measureTreeDepth(
  files: PackFiles,
  { cwd, alone }: Places,
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
  const asked = feed(git.stdin, lines(trees));
  let edges = 0;
  try {
    for await (const { id, content } of batchOf(git.stdout)) {
      const inside = childrenIn(content, index);
      edges += inside.length;
      if (edges > TREE_EDGES_MAX) return undefined;
      children.set(index.find(Buffer.from(id, "hex")), inside);
    }
  } finally {
    leave.abort();
    await asked;
    await git.exit;
  }
  signal.throwIfAborted();
  if (children.size !== trees.length) throw new Error("Cannot measure directories: git was ended");
  return deepest(children);
}

async function* lines(ids: readonly string[]): AsyncGenerator<Buffer> {
  const LINES = 1_000;
  for (let from = 0; from < ids.length; from += LINES) {
    yield Buffer.from(`${ids.slice(from, from + LINES).join("\n")}\n`);
  }
}

/** The objects that `cat-file --batch` prints: a line `<id> <type> <bytes>`, the content, a newline. */
async function* batchOf(source: AsyncIterable<Buffer>) {
  let chunks: Buffer[] = [];
  let [held, needed] = [0, 1];
  for await (const chunk of source) {
    chunks.push(chunk);
    held += chunk.length;
    if (held < needed) continue;
    let ahead = Buffer.concat(chunks);
    for (;;) {
      const end = ahead.indexOf(NEWLINE);
      const [id = "", , size = "0"] = ahead.toString("latin1", 0, Math.max(end, 0)).split(" ");
      needed = end < 0 ? ahead.length + 1 : end + 1 + Number(size) + 1;
      if (ahead.length < needed) break;
      yield { id, content: ahead.subarray(end + 1, needed - 1) };
      ahead = ahead.subarray(needed);
    }
    chunks = [ahead];
    held = ahead.length;
  }
}

/** Those of a tree's directories that are new too, by their place in the index. */
function childrenIn(tree: Buffer, index: PackIndex): Int32Array {
  const found: number[] = [];
  for (let at = 0; at < tree.length; ) {
    const idAt = tree.indexOf(0, at) + 1;
    if (idAt === 0) break;
    if (DIRECTORY.compare(tree, at, at + DIRECTORY.length) === 0) {
      const child = index.find(tree.subarray(idAt, idAt + ID_BYTES));
      if (child >= 0) found.push(child);
    }
    at = idAt + ID_BYTES;
  }
  return Int32Array.from(found);
}

/** Trees are named by their content, so none is below itself. */
function deepest(children: ReadonlyMap<number, Int32Array>): number {
  const depths = new Map<number, number>();
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
