/**
 * The refs of a repository, stored in rows. A table reads values, finds conflicting names, and collects the changes
 * of a push.
 */
import { hash } from "node:crypto";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { REF_ROWS } from "../../../schemas/repositories/limits.ts";
import { type RepoRow, type RepoRows, refsRow } from "./repo-state.ts";

type Refs = Readonly<Record<string, string>>;

/**
 * Number of names for which the rows are searched for refs below the name. For further names, the refs below all
 * directories are counted once.
 */
const LOOKED_FOR_BELOW = 32;
const NO_REFS: Refs = {};
const utf8 = new TextEncoder();

/**
 * Caches the sorted names of each row. A stored row never changes, so its names are sorted once while it is in
 * memory.
 */
const sortedNames = new WeakMap<Refs, readonly string[]>();

/** A table of refs. The changes of a push hide the stored values until the changed rows are written. */
export class RefTable {
  readonly #rows: RepoRows;
  readonly #seed: string;
  readonly #changes = new Map<string, string>();
  /**
   * For each directory: `moreBelow` is the number of refs that the changes add below it, minus the refs that they
   * delete. `setBelow` counts the refs below it to which a change gave a value.
   */
  readonly #moreBelow = new Map<string, number>();
  readonly #setBelow = new Map<string, number>();
  #storedBelow: ReadonlyMap<string, number> | undefined;
  #looked = 0;
  #count: number;
  #namesBytes: number;

  constructor(rows: RepoRows, held: { seed: string; refs: number; refNamesBytes: number }) {
    this.#rows = rows;
    this.#seed = held.seed;
    this.#count = held.refs;
    this.#namesBytes = held.refNamesBytes;
  }

  get count(): number {
    return this.#count;
  }

  /** Bytes of all names as JSON. */
  get namesBytes(): number {
    return this.#namesBytes;
  }

  get changed(): boolean {
    return this.#changes.size > 0;
  }

  /** The object id of a ref; zeros if the ref does not exist. */
  get(name: string): string {
    return this.#changes.get(name) ?? this.#stored(name);
  }

  /**
   * True if another ref is a directory of this name, or this name is a directory of another ref. Git stores refs as
   * files, and a file cannot also be a directory.
   */
  conflicts(name: string): boolean {
    return (
      directoriesOf(name).some((directory) => this.get(directory) !== ZERO_ID) ||
      this.#hasBelow(name)
    );
  }

  /** Sets the object id of a ref; zeros delete the ref. */
  set(name: string, value: string): void {
    const before = this.get(name);
    const wasSet = (this.#changes.get(name) ?? ZERO_ID) !== ZERO_ID;
    this.#changes.set(name, value);
    const added = Number(value !== ZERO_ID) - Number(before !== ZERO_ID);
    const set = Number(value !== ZERO_ID) - Number(wasSet);
    this.#count += added;
    if (added !== 0) this.#namesBytes += added * utf8.encode(JSON.stringify(name)).length;
    for (const directory of directoriesOf(name)) {
      this.#moreBelow.set(directory, (this.#moreBelow.get(directory) ?? 0) + added);
      this.#setBelow.set(directory, (this.#setBelow.get(directory) ?? 0) + set);
    }
  }

  /** Returns the rows that the changes touch, with their new content. */
  changedRows(version: number): Record<string, RepoRow> {
    const tables = new Map<number, Record<string, string>>();
    for (const [name, value] of this.#changes) {
      const row = this.#rowOf(name);
      const table = tables.get(row) ?? { ...this.#refsIn(row) };
      tables.set(row, table);
      if (value === ZERO_ID) delete table[name];
      else table[name] = value;
    }
    const rows = [...tables].map(([row, refs]) => [refsRow(row), { row: "refs", version, refs }]);
    return Object.fromEntries(rows);
  }

  #stored(name: string): string {
    const refs = this.#refsIn(this.#rowOf(name));
    return Object.hasOwn(refs, name) ? (refs[name] ?? ZERO_ID) : ZERO_ID;
  }

  #hasBelow(name: string): boolean {
    if ((this.#setBelow.get(name) ?? 0) > 0) return true;
    this.#looked += 1;
    if (this.#looked > LOOKED_FOR_BELOW) {
      return (this.#countBelow().get(name) ?? 0) + (this.#moreBelow.get(name) ?? 0) > 0;
    }
    const directory = `${name}/`;
    for (let row = 0; row < REF_ROWS; row++) {
      const names = namesOf(this.#refsIn(row));
      for (let at = firstFrom(names, directory); names[at]?.startsWith(directory); at++) {
        if (this.get(names[at] ?? "") !== ZERO_ID) return true;
      }
    }
    return false;
  }

  /**
   * Counts the stored refs below each directory. For a push that creates many refs this is cheaper than a search for
   * each name.
   */
  #countBelow(): ReadonlyMap<string, number> {
    if (this.#storedBelow) return this.#storedBelow;
    const counts = new Map<string, number>();
    for (let row = 0; row < REF_ROWS; row++) {
      for (const name of Object.keys(this.#refsIn(row))) {
        for (const directory of directoriesOf(name)) {
          counts.set(directory, (counts.get(directory) ?? 0) + 1);
        }
      }
    }
    this.#storedBelow = counts;
    return counts;
  }

  #refsIn(row: number): Refs {
    const stored = this.#rows.get(refsRow(row));
    return stored?.row === "refs" ? stored.refs : NO_REFS;
  }

  #rowOf(name: string): number {
    return Number.parseInt(hash("sha256", this.#seed + name).slice(0, 8), 16) % REF_ROWS;
  }
}

/**
 * Returns the directories of a ref's name: for `refs/heads/a/b/c`, `refs/heads/a` and `refs/heads/a/b`. Shorter
 * prefixes cannot be refs.
 */
function directoriesOf(name: string): string[] {
  const directories: string[] = [];
  const first = name.indexOf("/", "refs/".length);
  for (let at = name.indexOf("/", first + 1); at > 0; at = name.indexOf("/", at + 1)) {
    directories.push(name.slice(0, at));
  }
  return directories;
}

function namesOf(refs: Refs): readonly string[] {
  const known = sortedNames.get(refs);
  if (known) return known;
  const names = Object.keys(refs).sort();
  sortedNames.set(refs, names);
  return names;
}

/** Returns the index of the first of the sorted names that is not before `name`. */
function firstFrom(names: readonly string[], name: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((names[middle] ?? "") < name) low = middle + 1;
    else high = middle;
  }
  return low;
}
