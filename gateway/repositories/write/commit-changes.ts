/** Builds the directories of a new commit from its parent's directories and the changes. */
import { createHash } from "node:crypto";
import { ActorError } from "../../../schemas/errors.ts";
import type { ObjectReader } from "../read/read-objects.ts";
import { type RawEntry, walkTree } from "../read/read-parse.ts";
import { changeTree, keyOf, TREE } from "./tree-content.ts";

/** Limit for the bytes of directories that one commit reads and writes. They take about twice as much memory. */
export const COMMIT_TREES_BYTES_MAX = 32 * 1024 * 1024;

/** The change of one path: a file with this content, or its removal. */
export type FileChange =
  | { path: string; content: Buffer; mode?: FileMode | undefined }
  | { path: string; delete: true };
type FileMode = "100644" | "100755" | "120000";

export interface MadeObject {
  id: string;
  type: "commit" | "tree" | "blob";
  content: Buffer;
}

interface Change {
  /** The index of the change in the request. */
  at: number;
  change: FileChange;
}

interface Directory {
  /** The change of the name itself. */
  own?: Change;
  below: Map<string, Directory>;
  /** The index of the first change of this name or below it. */
  at: number;
}

const KEPT_MODES = new Set(["100644", "100755"]);

/**
 * Applies changes to a root directory. Returns the new objects, the root directory first. Throws ActorError
 * `invalid_request` if changes do not fit each other or the directories, and `object_too_large` if the directories
 * have too many bytes.
 */
export async function applyChanges(
  objects: ObjectReader,
  root: string | undefined,
  changes: readonly FileChange[],
): Promise<{ root: string; made: MadeObject[] }> {
  const made = new Map<string, MadeObject>();
  const add = (type: MadeObject["type"], content: Buffer) => {
    const object = makeObject(type, content);
    made.set(object.id, object);
    return object.id;
  };
  let treesBytes = 0;
  const count = (bytes: number) => {
    treesBytes += bytes;
    if (treesBytes <= COMMIT_TREES_BYTES_MAX) return;
    const text = `Cannot commit: its directories have more than ${COMMIT_TREES_BYTES_MAX} bytes`;
    throw new ActorError("object_too_large", text);
  };
  const tree = (await apply(root, plan(changes))) ?? add("tree", Buffer.alloc(0));
  return { root: tree, made: [...made.values()].reverse() };

  /** Returns the id of the changed directory, or undefined if it is empty afterwards. */
  async function apply(id: string | undefined, directory: Directory): Promise<string | undefined> {
    const before = id === undefined ? Buffer.alloc(0) : await treeOf(id);
    const names = Array.from(directory.below, ([name, below]) => ({
      name: Buffer.from(name),
      below,
    }));
    const keys = new Set(names.map(({ name }) => keyOf(name)));
    const known = new Map<string, RawEntry>();
    await walkTree(before, (entry) => {
      const key = keyOf(entry.name);
      if (keys.has(key)) known.set(key, entry);
    });
    const entries: RawEntry[] = [];
    for (const { name, below } of names) {
      const entry = await changed(known.get(keyOf(name)), below);
      if (entry) entries.push({ name, ...entry });
    }
    const content = await changeTree(before, keys, entries);
    if (content.length === 0) return undefined;
    count(content.length);
    const made = makeObject("tree", content);
    return made.id === id ? id : add("tree", content);
  }

  async function treeOf(id: string): Promise<Buffer> {
    const found = await objects.read(id);
    if (found?.type !== "tree")
      throw new Error(`Cannot read tree ${id}: it disappeared during the request`);
    count(found.bytes);
    return found.content;
  }

  async function changed(
    known: RawEntry | undefined,
    { own, below, at }: Directory,
  ): Promise<Pick<RawEntry, "mode" | "hash"> | undefined> {
    if (own && !("delete" in own.change)) {
      if (known?.mode === TREE) throw faultAt(own.at, "it is a directory");
      const { content, mode } = own.change;
      const currentMode = known && KEPT_MODES.has(known.mode) ? known.mode : "100644";
      return { mode: mode ?? currentMode, hash: add("blob", content) };
    }
    if (own && !known) throw faultAt(own.at, "there is no such file to delete");
    if (below.size === 0) return undefined;
    const before = own ? undefined : known;
    if (before && before.mode !== TREE)
      throw faultAt(at, "a parent directory of the path is a file");
    const hash = await apply(before?.hash, { below, at });
    return hash === undefined ? undefined : { mode: TREE, hash };
  }
}

export function makeObject(type: MadeObject["type"], content: Buffer): MadeObject {
  const id = createHash("sha1").update(`${type} ${content.length}\0`).update(content).digest("hex");
  return { id, type, content };
}

/** Groups the changes by directories. Throws `invalid_request` if they conflict. */
function plan(changes: readonly FileChange[]): Directory {
  const root: Directory = { below: new Map(), at: 0 };
  for (const [at, change] of changes.entries()) {
    let directory = root;
    for (const step of change.path.split("/")) {
      if (directory.own && !("delete" in directory.own.change)) {
        throw faultAt(at, "a parent directory of the path is a file of this commit");
      }
      const next = directory.below.get(step) ?? { below: new Map(), at };
      directory.below.set(step, next);
      directory = next;
    }
    if (directory.own) throw faultAt(at, "it is given twice");
    if (directory.below.size > 0 && !("delete" in change)) {
      throw faultAt(at, "it is a directory of this commit");
    }
    directory.own = { at, change };
  }
  return root;
}

function faultAt(at: number, why: string): ActorError {
  const pointer = `/changes/${at}/path`;
  const faults = [{ pointer, message: `Cannot accept ${pointer}: ${why}` }];
  return new ActorError("invalid_request", "Cannot commit: see its faults", { faults });
}
