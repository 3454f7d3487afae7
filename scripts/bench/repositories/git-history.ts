/**
 * The repository of the git benchmarks: 5,000 files, 1,000 commits, and additional commits that are prepared as
 * bodies of pushes.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { FLUSH, pktLine } from "../../../gateway/repositories/git/pkt-line.ts";

const FILES = 5_000;
const COMMITS = 1_000;
/** The ref that pushes update. */
export const REF = "refs/heads/main";
/**
 * Lines of each file. With this number, the pack of the whole repository has 10 MB, as a repository of source code
 * has.
 */
const FILE_LINES = 100;
const COMMON_LINES = 1_000;

export interface PreparedPush {
  body: Uint8Array<ArrayBuffer>;
}

export class GitHistory {
  readonly folder: string;
  readonly base: string;
  readonly pushes: readonly PreparedPush[];

  /**
   * Creates a repository with 1,000 commits; `main` points at the last one. Also prepares `pushes` pushes. Each push
   * adds one commit on top of the push before it.
   */
  static async make(folder: string, pushes: number): Promise<GitHistory> {
    const path = join(folder, "source.git");
    execFileSync("git", ["init", "-q", "--bare", "-b", "main", path]);
    const importing = spawn("git", ["fast-import", "--quiet"], {
      cwd: path,
      stdio: ["pipe", "ignore", "inherit"],
    });
    for (let commit = 0; commit < COMMITS + pushes; commit++) {
      const text = commitText(commit);
      if (!importing.stdin.write(text)) await once(importing.stdin, "drain");
    }
    importing.stdin.end("done\n");
    const [code] = await once(importing, "close");
    if (code !== 0) throw new Error("Cannot make a history: fast-import failed");
    return new GitHistory(path, pushes);
  }

  constructor(folder: string, pushes: number) {
    this.folder = folder;
    const git = (parameters: string[], input?: string) =>
      execFileSync("git", parameters, { cwd: folder, maxBuffer: 2 ** 28, ...(input && { input }) });
    const commits = git(["rev-list", "--reverse", "main"]).toString().trim().split("\n");
    this.base = commits[COMMITS - 1] ?? "";
    this.pushes = commits.slice(COMMITS).map((value, at) => {
      const old = commits[COMMITS + at - 1] ?? "";
      const pack = git(
        ["pack-objects", "--thin", "--revs", "--stdout", "-q", "--delta-base-offset"],
        `${value}\n^${old}\n`,
      );
      const command = pktLine(`${old} ${value} ${REF}\0 report-status\n`);
      return { body: Uint8Array.from(Buffer.concat([command, FLUSH, pack])) };
    });
    git(["update-ref", REF, this.base]);
    git(["repack", "-q", "-a", "-d"]);
    if (this.pushes.length !== pushes) throw new Error("Cannot make a history: it is too short");
  }
}

function commitText(commit: number): string {
  const lines = [
    `commit ${REF}`,
    `committer A <a@example.com> ${1_700_000_000 + commit} +0000`,
    `data <<E\ncommit ${commit}\nE`,
  ];
  const files = commit === 0 ? Array.from({ length: FILES }, (_, i) => i) : [0, 1, 2].map(changed);
  for (const file of files) {
    const path = `d${file % 50}/e${Math.floor(file / 50) % 10}/file-${file}.txt`;
    lines.push(`M 100644 inline ${path}`, `data <<E\n${contentOf(file, commit)}E`);
  }
  return `${lines.join("\n")}\n`;

  function changed(i: number): number {
    return (commit * 7919 + i * 104_729) % FILES;
  }
}

/** Returns text that does not compress to almost nothing. As in source code, some lines occur in many files. */
function contentOf(file: number, commit: number): string {
  return Array.from({ length: FILE_LINES }, (_, line) => {
    const isCommon = (file + line) % 3 === 0;
    const own = isCommon
      ? (file * 7 + line) % COMMON_LINES
      : COMMON_LINES + file * FILE_LINES + line;
    const seed = line === commit % FILE_LINES ? own + commit * 17 : own;
    return `${Math.imul(seed + 1, 2_654_435_761) >>> 0} ${Math.imul(seed + 7, 40_503) >>> 0}\n`;
  }).join("");
}
