/** Receives the pack of a push in an isolated folder, where git checks every object and link. */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { repoTooLarge } from "../../../schemas/repositories/git-sizes.ts";
import { type CacheFiles, filesOf, gone, removeAll, statOf } from "../cache/cache-files.ts";
import { checkIntact } from "../cache/read-in-view.ts";
import type { RepoView } from "../cache/repo-cache.ts";
import type { PktReader } from "../git/pkt-line.ts";
import { feed, type GitExit, startGit } from "../process/git-process.ts";
import { type PackFiles, withWhole } from "./pack-store.ts";
import type { ObjectFolders } from "./tree-depth.ts";

export interface Quarantine extends ObjectFolders, AsyncDisposable {
  /** Undefined if the push brought no object. */
  files?: PackFiles;
  /** The fault of the pack. */
  fault?: string;
  /** True when the fault is a lack of space. */
  lacksRoom?: true;
}

/** Bytes of a pack's header: "PACK", the version, and the number of objects. */
const PACK_HEAD_BYTES = 12;
/** Git's checks of objects, except for three faults that are common in old histories and widely accepted. */
const STRICT =
  "--strict=zeroPaddedFilemode=ignore,badTimezone=ignore,missingSpaceBeforeDate=ignore";

/** The error of git when it reads more than `--max-input-size`. */
const TOO_LARGE = /^fatal: pack exceeds maximum allowed size/m;

/**
 * Reads a pack to its end and checks it. The repository may still grow by `room` bytes; its whole limit is
 * `repoBytes`. Rejects with the error of `gone` if git reported a fault while another process emptied the cache.
 */
export async function quarantinePack(
  files: CacheFiles,
  view: Pick<RepoView, "cwd" | "environment" | "isIntact">,
  reader: PktReader,
  { room, repoBytes, signal }: { room: number; repoBytes: number; signal: AbortSignal },
): Promise<Quarantine> {
  const folder = resolve(files.temporary("push"));
  const { cwd, environment } = view;
  const alone = { ...environment, GIT_OBJECT_DIRECTORY: folder, GIT_QUARANTINE_PATH: folder };
  const together = {
    ...alone,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: environment.GIT_OBJECT_DIRECTORY ?? "",
  };
  const quarantine: Quarantine = {
    cwd,
    alone,
    together,
    [Symbol.asyncDispose]: () => removeAll(folder),
  };
  try {
    await mkdir(join(folder, "pack"), { recursive: true });
    const head = await reader.peek(PACK_HEAD_BYTES);
    if (head.length < PACK_HEAD_BYTES || head.toString("latin1", 0, 4) !== "PACK") {
      return { ...quarantine, fault: "there is no pack after the commands" };
    }
    // Git sends an empty pack if the new refs need no new objects.
    if (head.readUInt32BE(8) === 0) {
      for await (const _ of reader.rest()) signal.throwIfAborted();
      return quarantine;
    }
    const bytesMax = Math.max(1, Math.min(room, repoBytes));
    const parameters = [
      "index-pack",
      "--stdin",
      "--fix-thin",
      STRICT,
      `--max-input-size=${bytesMax}`,
    ];
    const { exit, stdout } = await indexed(parameters, reader, {
      cwd,
      environment: together,
      signal,
    });
    const name = /^pack\t([0-9a-f]{40})\n/.exec(stdout)?.[1];
    if (exit.code !== 0 || name === undefined) {
      if (!TOO_LARGE.test(exit.stderr)) {
        await checkIntact(view);
        if (!(await statOf(folder))) throw gone(folder);
        return { ...quarantine, fault: faultOf(exit) };
      }
      return { ...quarantine, fault: repoTooLarge(repoBytes - room, repoBytes), lacksRoom: true };
    }
    return { ...quarantine, files: withWhole(filesOf(join(folder, "pack", `pack-${name}`))) };
  } catch (error) {
    await removeAll(folder);
    throw error;
  }
}

async function indexed(
  parameters: readonly string[],
  reader: PktReader,
  options: Parameters<typeof startGit>[1],
): Promise<{ exit: GitExit; stdout: string }> {
  const leave = new AbortController();
  const signal = AbortSignal.any([options.signal, leave.signal]);
  const git = startGit(parameters, { ...options, signal });
  let stdout = "";
  git.stdout.setEncoding("latin1").on("data", (text: string) => {
    stdout += text;
  });
  try {
    await feed(git.stdin, reader.rest());
  } catch (error) {
    leave.abort();
    await git.exit;
    throw error;
  }
  const exit = await git.exit;
  options.signal.throwIfAborted();
  return { exit, stdout };
}

/** Returns git's last error without its prefix. */
function faultOf({ code, stderr }: GitExit): string {
  if (code === null) return "index-pack took more than it may have";
  const errors = stderr.split("\n").filter((line) => /^(fatal|error): /.test(line));
  const last = errors.at(-1)?.replace(/^(fatal|error): /, "") ?? "index-pack failed";
  return last.slice(0, 300);
}
