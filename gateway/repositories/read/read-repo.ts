/** Reads the content of a repository: its refs, history, directories and files. */

import { ActorError } from "../../../schemas/errors.ts";
import { LOG_ENTRIES_MAX, PATH_BYTES_MAX } from "../../../schemas/repositories/limits.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { runGit } from "../process/git-process.ts";
import type { ObjectReader, ObjectReaders } from "./read-objects.ts";
import {
  type Commit,
  parseCommit,
  parseTree,
  type RawEntry,
  type TreeEntry,
  walkTree,
} from "./read-parse.ts";
import type { ReadObject } from "./read-process.ts";

/** Limit for the bytes of a tree or commit that is shown as JSON. A tree of some 200,000 entries fits. */
export const SHOWN_OBJECT_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Limit for the bytes of all commits of one log. Two of the largest commits fit, or LOG_ENTRIES_MAX commits with
 * messages of ten pages.
 */
export const LOG_BYTES_MAX = 16 * 1024 * 1024;

/** An existing file, whose content is read on demand. */
export interface FoundFile {
  /** Object id of the blob. */
  id: string;
  bytes: number;
  content(): Promise<Buffer>;
}

/** Reserves memory for a response before its bytes are read. Throws past the limit. */
export type Hold = (bytes: number) => void;

/**
 * A ref followed by steps to ancestors, such as `~1`, which no ref's name may contain. Only a few steps are allowed,
 * because for each step git walks the history.
 */
const ANCESTOR = /^(.*?)((?:[~^]\d{0,4}){1,4})$/s;
/**
 * Paths that git may take for the name of another object. `git describe` prints names that end with `-g` and the first
 * digits of an id. Git takes every such name, also `<commit>:<path>`, for the object with these digits, and steps such as
 * `~1` or `^{tree}` may follow. In `^{/text}`, the text may contain slashes.
 */
const DESCRIBED = /-g[0-9a-f]{4,}(?:$|[~^])/i;
const ANY: Hold = () => {};
/** Commits of a log that are read one by one. For more commits, a separate git process walks the history. */
const WALKED_MAX = 100;

export class RepoReader {
  readonly #parts: Pick<GitParts, "slots">;
  readonly #readers: ObjectReaders;
  readonly #repo: OpenedRepo;
  readonly #signal: AbortSignal;
  readonly #objects: ObjectReader;

  constructor(
    parts: Pick<GitParts, "slots">,
    readers: ObjectReaders,
    repo: OpenedRepo,
    signal: AbortSignal,
  ) {
    this.#parts = parts;
    this.#readers = readers;
    this.#repo = repo;
    this.#signal = signal;
    this.#objects = readers.reader(repo, signal);
  }

  /**
   * Returns the commit that a branch, a tag, a whole ref, an id, its first digits or HEAD leads to. Steps such as in
   * `main~2` or `HEAD^` lead on to an ancestor.
   */
  async resolve(ref: string): Promise<string | undefined> {
    const [, named = ref, steps = ""] = ANCESTOR.exec(ref) ?? [];
    const id = this.#idOf(named);
    if (id === undefined) return undefined;
    const found = await this.#objects.head(`${id}${steps}^{commit}`);
    if (!found && steps === "" && this.#isBranch(named)) {
      throw new Error(`Cannot read branch ${named}: ${id} is not there`);
    }
    return found?.id;
  }

  /**
   * Lists the commits of a ref along first parents, newest first. The list is empty if HEAD has no commit. Throws
   * ActorError `not_found` for an unknown ref, and `object_too_large` if the commits exceed the limit of a log.
   */
  async log(
    ref: string,
    { limit, offset }: { limit: number; offset: number },
    hold = ANY,
  ): Promise<Commit[]> {
    const tip = await this.resolve(ref);
    if (tip === undefined && ref === "HEAD") return [];
    if (tip === undefined) throw new ActorError("not_found", `Ref not found: there is no "${ref}"`);
    const count = Math.min(limit, LOG_ENTRIES_MAX);
    let bytes = 0;
    const take: Hold = (more) => {
      bytes += more;
      if (bytes > LOG_BYTES_MAX) {
        const text = `Cannot show history: its commits have more than ${LOG_BYTES_MAX} bytes; ask for fewer`;
        throw new ActorError("object_too_large", text);
      }
      hold(more);
    };
    if (offset + count > WALKED_MAX) {
      const ids = await this.#firstParents(tip, count, offset);
      return Promise.all(ids.map((id) => this.#commit(id, take)));
    }
    const commits: Commit[] = [];
    // The history of an import with a limited depth ends at these commits.
    const ends = new Set(this.#repo.manifest.shallow);
    let id: string | undefined = tip;
    for (let at = 0; id !== undefined && at < offset + count; at++) {
      const commit: Commit = await this.#commit(id, at < offset ? ANY : take);
      if (at >= offset) commits.push(commit);
      id = ends.has(id) ? undefined : commit.parents[0];
    }
    return commits;
  }

  /** Returns the commit with this id, or undefined if there is none. */
  async commit(id: string, hold = ANY): Promise<Commit | undefined> {
    const found = await this.#shown(id, "commit", hold);
    return found && parseCommit(id, found.content);
  }

  /** Returns the entries of one directory in git's order. */
  async tree(id: string, hold = ANY): Promise<TreeEntry[] | undefined> {
    const found = await this.#shown(id, "tree", hold);
    return found && (await parseTree(found.content));
  }

  async blob(id: string): Promise<FoundFile | undefined> {
    const head = await this.#objects.head(id);
    return head?.type === "blob" ? this.#file(head) : undefined;
  }

  /**
   * Returns the file at a path, or undefined if the path leads to no file. A symbolic link counts as a file whose
   * content is its target. Throws ActorError `object_too_large` if a directory must be read that is too large.
   */
  async file(ref: string, path: string, hold = ANY): Promise<FoundFile | undefined> {
    const normal = normalPath(path);
    const commit = normal && (await this.resolve(ref));
    if (!commit) return undefined;
    const name = DESCRIBED.test(normal)
      ? (await this.#entry(commit, normal, hold))?.hash
      : `${commit}:${normal}`;
    const head = name === undefined ? undefined : await this.#objects.head(name);
    return head?.type === "blob" ? this.#file(head) : undefined;
  }

  /** Finds the entry at a path of a commit in the directory that contains it. */
  async #entry(commit: string, path: string, hold: Hold): Promise<RawEntry | undefined> {
    // Git takes a path that ends with a slash for nothing but a directory.
    const parent = path.slice(0, path.lastIndexOf("/") + 1);
    const found = await this.#shown(`${commit}:${parent}`, "tree", hold);
    if (found === undefined) return undefined;
    const name = Buffer.from(path.slice(parent.length));
    const entries: RawEntry[] = [];
    await walkTree(found.content, (entry) => {
      if (entry.name.equals(name)) entries.push(entry);
    });
    return entries[0];
  }

  /**
   * Returns whether the name is that of a branch. A branch always leads to a commit; otherwise the view is damaged.
   */
  #isBranch(ref: string): boolean {
    const { refs } = this.#repo.manifest;
    return ref === "HEAD" || ref.startsWith("refs/heads/") || refs.has(`refs/heads/${ref}`);
  }

  /**
   * Returns the id that a name stands for. As in the public API, a branch comes before a tag, and a tag before an id.
   */
  #idOf(ref: string): string | undefined {
    const { refs, head } = this.#repo.manifest;
    if (ref === "HEAD") return refs.get(head);
    if (ref.startsWith("refs/")) return refs.get(ref);
    const named = refs.get(`refs/heads/${ref}`) ?? refs.get(`refs/tags/${ref}`);
    return named ?? (/^[0-9a-f]{4,40}$/.test(ref) ? ref : undefined);
  }

  #file({ id, bytes }: { id: string; bytes: number }): FoundFile {
    return {
      id,
      bytes,
      content: async () => {
        const found = await this.#objects.read(id);
        if (!found) throw new Error(`Cannot read blob ${id}: it disappeared during the request`);
        return found.content;
      },
    };
  }

  async #shown(name: string, type: string, hold: Hold): Promise<ReadObject | undefined> {
    const head = await this.#objects.head(name);
    if (head?.type !== type) return undefined;
    if (head.bytes > SHOWN_OBJECT_BYTES_MAX) {
      const text = `Cannot show ${type}: it has ${head.bytes} bytes, more than ${SHOWN_OBJECT_BYTES_MAX}`;
      throw new ActorError("object_too_large", text);
    }
    hold(head.bytes);
    return this.#objects.read(head.id);
  }

  async #commit(id: string, hold: Hold): Promise<Commit> {
    const commit = await this.commit(id, hold);
    if (!commit) throw new Error(`Cannot read commit ${id}: it is not there`);
    return commit;
  }

  async #firstParents(tip: string, count: number, offset: number): Promise<string[]> {
    const leave = await this.#parts.slots.enter(this.#repo, this.#signal);
    try {
      const range = [`--max-count=${count}`, `--skip=${offset}`, tip, "--"];
      return await this.#readers.inView(this.#repo, this.#signal, async ({ cwd, environment }) => {
        const { code, stdout, stderr } = await runGit(["rev-list", "--first-parent", ...range], {
          ...{ cwd, environment },
          signal: this.#signal,
        });
        if (code !== 0) throw new Error(`Cannot walk history: ${stderr}`);
        return stdout.toString("latin1").split("\n").filter(Boolean);
      });
    } finally {
      leave();
    }
  }
}

/**
 * Returns the path without empty steps and `.`. Returns undefined if the path leaves the repository or names no file.
 */
function normalPath(path: string): string | undefined {
  const steps = path.split("/").filter((step) => step !== "" && step !== ".");
  const isGood =
    steps.length > 0 &&
    !steps.includes("..") &&
    !path.includes("\0") &&
    Buffer.byteLength(path) <= PATH_BYTES_MAX;
  return isGood ? steps.join("/") : undefined;
}
