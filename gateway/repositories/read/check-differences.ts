/**
 * Counts the directories and files that differ between two trees before git compares them.
 *
 * `git diff-tree -r` reads a directory again for each of its paths, and prints nothing until it has read all of them.
 * Some kilobytes of trees can have a trillion paths, because many entries may name the same directory. This check reads
 * each pair of directories once per level, and counts the paths that lead to the pair.
 */
import { ActorError } from "../../../schemas/errors.ts";
import { EMPTY_TREE } from "../../../schemas/repositories/git-names.ts";
import {
  DIFF_COMPARED_DIRECTORIES_MAX,
  DIFF_COMPARED_FILES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { type RunningGit, startGit } from "../process/git-process.ts";
import type { HeldView } from "./read-objects.ts";

const DIRECTORY_MODE = "040000";
const NO_MODE = "000000";
/** Git repeats a line that names no objects, and flushes its output. */
const LEVEL_END = "end\n";

/** Ids of two trees, separated by a space, with the number of paths at which they differ. */
type TreePairs = Map<string, number>;

export interface DifferenceLimits {
  directoriesMax?: number;
  filesMax?: number;
}

/**
 * Throws ActorError `object_too_large` if more than `directoriesMax` directories or `filesMax` files differ between two
 * trees, and `deadline_exceeded` after `msMax`. `base` and `head` are the ids of the trees.
 */
export async function checkDifferences(
  { cwd, environment }: Pick<HeldView, "cwd" | "environment">,
  { base, head }: { base: string; head: string },
  {
    directoriesMax = DIFF_COMPARED_DIRECTORIES_MAX,
    filesMax = DIFF_COMPARED_FILES_MAX,
    msMax,
    signal,
  }: DifferenceLimits & { msMax: number; signal: AbortSignal },
): Promise<void> {
  const leave = new AbortController();
  const late = AbortSignal.timeout(msMax);
  const git = startGit(["diff-tree", "--stdin", "--raw", "--no-abbrev", "-z"], {
    cwd,
    environment,
    signal: AbortSignal.any([signal, leave.signal, late]),
  });
  let [directories, files] = [0, 0];
  try {
    const changes = changesIn(git);
    for (let level: TreePairs = new Map([[`${base} ${head}`, 1]]); level.size > 0; ) {
      const next: TreePairs = new Map();
      for await (const { pair, isFile, paths } of changes(level)) {
        if (isFile) files += paths;
        if (pair !== undefined) {
          directories += paths;
          next.set(pair, (next.get(pair) ?? 0) + paths);
        }
        if (directories > directoriesMax) throw tooMany(`${directoriesMax} directories`);
        if (files > filesMax) throw tooMany(`${filesMax} files`);
      }
      level = next;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw late.aborted && !(error instanceof ActorError) ? tooLong() : error;
  } finally {
    leave.abort();
    // Unread output would keep `exit` waiting for ever.
    git.stdout.destroy();
    await git.exit;
  }
}

interface Change {
  /** The two directories of an entry that is a directory on at least one side. */
  pair: string | undefined;
  /** True if the entry is a file on at least one side. */
  isFile: boolean;
  /** The number of paths at which this entry differs. */
  paths: number;
}

/** Returns a function that yields the entries that differ in the pairs of one level. */
function changesIn({ stdin, stdout }: Pick<RunningGit, "stdin" | "stdout">) {
  const output = stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  return async function* (level: TreePairs): AsyncGenerator<Change, void, undefined> {
    stdin.write(`${[...level.keys()].join("\n")}\n${LEVEL_END}`);
    const counts = level.values();
    let paths = 0;
    let [rest, isPath] = ["", false];
    // Git prints each pair as a line, and then its entries: `:<modes and ids>`, NUL, the name, NUL.
    while (isPath || !rest.endsWith(LEVEL_END)) {
      const { value, done } = await output.next();
      if (done) throw new Error("Cannot count differences: git stopped unexpectedly");
      const fields = `${rest}${value.toString("latin1")}`.split("\0");
      rest = fields.pop() ?? "";
      for (const field of fields) {
        isPath = !isPath;
        if (!isPath) continue;
        const lines = field.split("\n");
        for (let line = 1; line < lines.length; line++) paths = counts.next().value ?? 0;
        yield { ...changeOf(lines.at(-1) ?? ""), paths };
      }
    }
  };
}

function changeOf(line: string): Omit<Change, "paths"> {
  const [oldMode = "", newMode = "", oldId = "", newId = ""] = line.slice(1).split(" ");
  const idOf = (mode: string, id: string) => (mode === DIRECTORY_MODE ? id : EMPTY_TREE);
  const modes = [oldMode, newMode];
  return {
    pair: modes.includes(DIRECTORY_MODE)
      ? `${idOf(oldMode, oldId)} ${idOf(newMode, newId)}`
      : undefined,
    isFile: modes.some((mode) => mode !== DIRECTORY_MODE && mode !== NO_MODE),
  };
}

export const tooLong = () =>
  new ActorError("deadline_exceeded", "Cannot compare: the difference takes too long to find");

const tooMany = (bound: string) =>
  new ActorError(
    "object_too_large",
    `Cannot compare: more than ${bound} differ; compare commits that differ less`,
  );
