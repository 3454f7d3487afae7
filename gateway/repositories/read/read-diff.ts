/**
 * Reads the differences between two commits, up to a limit: the changed files, and their changed lines as a patch.
 */

import { ActorError } from "../../../schemas/errors.ts";
import { DIFF_FILES_MAX, DIFF_PATCH_BYTES_MAX } from "../../../schemas/repositories/limits.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { startGit } from "../process/git-process.ts";
import type { ObjectReaders } from "./read-objects.ts";

/** Limit for the bytes of git's list of files. Git is killed there. */
export const DIFF_LIST_BYTES_MAX = 4 * 1024 * 1024;
const DIFF_MS_MAX = 20_000;

const DIFF_STATUSES = {
  A: "added",
  D: "deleted",
  M: "modified",
  R: "renamed",
  T: "type_changed",
} as const;
type DiffStatus = (typeof DIFF_STATUSES)[keyof typeof DIFF_STATUSES];

interface DiffFile {
  path: string;
  /** The former path of a renamed file. */
  oldPath?: string;
  status: DiffStatus;
  oldMode: string | null;
  newMode: string | null;
  oldHash: string | null;
  newHash: string | null;
  /** Added lines, or null for a binary file. */
  additions: number | null;
  deletions: number | null;
}

export interface Diff {
  files: DiffFile[];
  patch: string;
  /** True if the diff is longer than the limits, so that the end is missing. */
  truncated: boolean;
}

const SETTINGS = {
  "diff.renames": "true",
  "diff.renameLimit": "400",
  // Git treats larger files as binary files and does not compare their lines.
  "core.bigFileThreshold": "2m",
};
const NO_MODE = "000000";

/** Compares two commits of a repository. `base` may also be the empty tree. */
export async function readDiff(
  parts: Pick<GitParts, "slots"> & { readers: ObjectReaders },
  repo: OpenedRepo,
  {
    base,
    head,
    signal,
    msMax = DIFF_MS_MAX,
  }: { base: string; head: string; signal: AbortSignal; msMax?: number },
): Promise<Diff> {
  const leave = await parts.slots.enter(repo, signal);
  try {
    const [listed, patch] = await parts.readers.inView(repo, signal, async (view) => {
      const run = (format: readonly string[], bytesMax: number) => {
        const parameters = ["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", ...format];
        return cut([...parameters, base, head, "--"], view, { bytesMax, msMax, signal });
      };
      const list = ["--raw", "--no-abbrev", "--numstat", "-z"];
      return [
        await run(list, DIFF_LIST_BYTES_MAX),
        await run(["-p", "--full-index"], DIFF_PATCH_BYTES_MAX),
      ];
    });
    const { files, whole } = parseList(listed.output);
    return {
      files: files.slice(0, DIFF_FILES_MAX),
      patch: wholeLines(patch.output, patch.isCut),
      truncated: listed.isCut || patch.isCut || !whole || files.length > DIFF_FILES_MAX,
    };
  } finally {
    leave();
  }
}

/** Returns git's output up to `bytesMax`, and kills git there. */
async function cut(
  parameters: readonly string[],
  { cwd, environment }: { cwd: string; environment: Readonly<Record<string, string>> },
  { bytesMax, msMax, signal }: { bytesMax: number; msMax: number; signal: AbortSignal },
): Promise<{ output: Buffer; isCut: boolean }> {
  const enough = new AbortController();
  const late = AbortSignal.timeout(msMax);
  const git = startGit(parameters, {
    cwd,
    environment,
    config: SETTINGS,
    signal: AbortSignal.any([signal, enough.signal, late]),
  });
  git.stdin.end();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of git.stdout) {
    // Git is being killed, so its remaining output is ignored.
    if (bytes > bytesMax) continue;
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bytesMax) enough.abort();
  }
  const isCut = bytes > bytesMax;
  const { code, stderr } = await git.exit;
  signal.throwIfAborted();
  if (late.aborted && !isCut) {
    const text = "Cannot compare: the difference takes too long to find";
    throw new ActorError("deadline_exceeded", text);
  }
  if (code !== 0 && !isCut) throw new Error(`Cannot compare commits: ${stderr}`);
  return { output: Buffer.concat(chunks).subarray(0, bytesMax), isCut };
}

/**
 * Parses git's list of changed files. The list has all files with their modes and ids first, and then all files again
 * with their numbers of lines (git-diff-tree, "-z").
 */
function parseList(output: Buffer): { files: DiffFile[]; whole: boolean } {
  const fields = output.toString("utf8").split("\0");
  // The text after the last zero byte is empty, or is a part of a field that was cut off.
  const rest = fields.pop();
  const files: DiffFile[] = [];
  let at = 0;
  for (; fields[at]?.startsWith(":"); ) {
    const [oldMode = "", newMode = "", oldHash = "", newHash = "", status = ""] =
      fields[at]?.slice(1).split(" ") ?? [];
    const known = DIFF_STATUSES[status[0] as keyof typeof DIFF_STATUSES];
    const isMoved = status.startsWith("R");
    const [first, second] = [fields[at + 1], fields[at + 2]];
    const path = isMoved ? second : first;
    if (known === undefined || path === undefined) break;
    at += isMoved ? 3 : 2;
    files.push({
      path,
      ...(isMoved && first !== undefined && { oldPath: first }),
      status: known,
      oldMode: modeOf(oldMode),
      newMode: modeOf(newMode),
      oldHash: oldMode === NO_MODE ? null : oldHash,
      newHash: newMode === NO_MODE ? null : newHash,
      additions: null,
      deletions: null,
    });
  }
  let counted = 0;
  for (const file of files) {
    const [, added, removed, path] = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(fields[at] ?? "") ?? [];
    if (added === undefined || removed === undefined) break;
    // A renamed file is followed by its two paths.
    at += path === "" ? 3 : 1;
    counted += 1;
    if (added === "-") continue;
    file.additions = Number(added);
    file.deletions = Number(removed);
  }
  return { files, whole: rest === "" && counted === files.length };
}

const modeOf = (mode: string) => (mode === NO_MODE ? null : mode.replace(/^0+/, ""));

function wholeLines(output: Buffer, isCut: boolean): string {
  const end = isCut ? output.lastIndexOf(0x0a) + 1 : output.length;
  return output.toString("utf8", 0, end);
}
