/** The refs of a repository over their rows: what one is, what stands in its way, and what a push would make of them. */
import { hash } from "node:crypto";
import { REF_ROWS } from "../../schemas/git-limits.ts";
import { ZERO_ID } from "../../schemas/git-names.ts";
import { type RepoRow, type RepoRows, refsRow } from "./repo-state.ts";

type Refs = Readonly<Record<string, string>>;

const NO_REFS: Refs = {};
const utf8 = new TextEncoder();

/** Names in their order; rows do not change, so each is sorted once for as long as it is in memory. */
const sortedNames = new WeakMap<Refs, readonly string[]>();

/** What a push changes stands over the rows until it is written. */
export class RefTable {
  readonly #rows: RepoRows;
  readonly #seed: string;
  readonly #changes = new Map<string, string>();
  /** How many refs the changes make below each directory. */
  readonly #madeBelow = new Map<string, number>();
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

  /** Of all names, as JSON. */
  get namesBytes(): number {
    return this.#namesBytes;
  }

  get changed(): boolean {
    return this.#changes.size > 0;
  }

  /** The object id, or zeros. */
  get(name: string): string {
    return this.#changes.get(name) ?? this.#stored(name);
  }

  /** True where a ref is above or below this name: git keeps refs as files, and a file is no directory. */
  conflicts(name: string): boolean {
    return (
      directoriesOf(name).some((directory) => this.get(directory) !== ZERO_ID) ||
      this.#hasBelow(name)
    );
  }

  /** Zeros delete it. */
  set(name: string, value: string): void {
    const before = this.get(name);
    this.#changes.set(name, value);
    const added = Number(value !== ZERO_ID) - Number(before !== ZERO_ID);
    if (added === 0) return;
    this.#count += added;
    this.#namesBytes += added * utf8.encode(JSON.stringify(name)).length;
    for (const directory of directoriesOf(name)) {
      this.#madeBelow.set(directory, (this.#madeBelow.get(directory) ?? 0) + added);
    }
  }

  /** The rows that the changes touch, as they are to be. */
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
    if ((this.#madeBelow.get(name) ?? 0) > 0) return true;
    const directory = `${name}/`;
    for (let row = 0; row < REF_ROWS; row++) {
      const names = namesOf(this.#refsIn(row));
      for (let at = firstFrom(names, directory); names[at]?.startsWith(directory); at++) {
        if (this.get(names[at] ?? "") !== ZERO_ID) return true;
      }
    }
    return false;
  }

  #refsIn(row: number): Refs {
    const stored = this.#rows.get(refsRow(row));
    return stored?.row === "refs" ? stored.refs : NO_REFS;
  }

  #rowOf(name: string): number {
    return Number.parseInt(hash("sha256", this.#seed + name).slice(0, 8), 16) % REF_ROWS;
  }
}

/** `refs/heads/a` and `refs/heads/a/b` of `refs/heads/a/b/c`; what is above those is no ref. */
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

/** Where the first name is that is not before this one. */
function firstFrom(names: readonly string[], name: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((names[middle] ?? "") < name) low = middle + 1;
    else high = middle;
  }
  return low;
}
