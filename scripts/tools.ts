/** Finds the programs that are not Node packages: where each may lie, and which version is good enough. */
import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join, resolve } from "node:path";

export const REPOSITORY = resolve(import.meta.dirname, "..");
export const TOOLS = join(REPOSITORY, ".tools");

/** The oldest nats-server with all that the runtime uses: atomic batches, scheduled messages, per-key TTL. */
const NATS_SERVER_MIN = [2, 14] as const;

/** The nats-server to run: from PATH if it is new enough, else the copy that scripts/setup made. */
export function findNatsServer(environment: NodeJS.ProcessEnv = process.env): string {
  const found: string[] = [];
  for (const path of candidates("nats-server", environment)) {
    const version = versionOf(path);
    const [major = 0, minor = 0] = version.split(".").map(Number);
    const [majorMin, minorMin] = NATS_SERVER_MIN;
    if (major > majorMin || (major === majorMin && minor >= minorMin)) return path;
    found.push(`${path} is ${version}`);
  }
  const needed = `nats-server ${NATS_SERVER_MIN.join(".")} or newer is needed`;
  throw new Error(
    `Cannot start nats-server: ${needed}, ${found.join(", ") || "none was found"} (run scripts/setup)`,
  );
}

/** Every executable of this name on PATH and in .tools, in that order. */
function candidates(name: string, environment: NodeJS.ProcessEnv): string[] {
  const folders = (environment.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return [...folders, TOOLS].map((folder) => join(folder, name)).filter(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // Missing or not ours to run: the next folder may have it.
  }
}

/** The first dotted number in what `--version` prints; a program that cannot even say it counts as 0. */
function versionOf(path: string): string {
  try {
    const text = execFileSync(path, ["--version"], { encoding: "utf8", stdio: "pipe" });
    return /\d+(\.\d+)+/.exec(text)?.[0] ?? "0";
  } catch {
    return "0"; // Not a program of this machine; the caller names it in its error.
  }
}
