/** Finds the external programs that are not Node packages, and checks their versions. */
import { execFileSync } from "node:child_process";
import { accessSync, constants, globSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";

export const REPOSITORY = resolve(import.meta.dirname, "..");
/**
 * True if this code runs from the npm package, which contains JavaScript; false in a clone, which contains
 * TypeScript.
 */
export const IS_PACKAGE = import.meta.filename.endsWith(".js");
/**
 * The folder for the programs that scripts/setup installs. For the npm package it is outside the package: the
 * package's folder may be read-only, and a new version replaces it.
 */
export const TOOLS = IS_PACKAGE ? cacheFolder() : join(REPOSITORY, ".tools");

/**
 * The oldest supported version of nats-server. The runtime needs its atomic batches, scheduled messages and a TTL for
 * each key.
 */
export const NATS_SERVER_MIN = "2.14";
/** The first nats-server that restores an archive of messages, as `trunkline admin restore` does. */
export const NATS_SERVER_RESTORE_MIN = "2.15";
/** Timeout for `--version`: long enough for a cold start of a full browser. */
const VERSION_MS_MAX = 10_000;
/** The oldest tested git. */
export const GIT_MIN = "2.39";

/** Returns the nats-server to run: from PATH if it is new enough, otherwise the one that scripts/setup installed. */
export function findNatsServer(
  versionMin = NATS_SERVER_MIN,
  { environment = process.env, tools = TOOLS } = {},
): string {
  const paths = [...onPath("nats-server", environment), join(tools, "nats-server")];
  return newEnough("nats-server", versionMin, paths);
}

export const isNatsServerSupported = (version: string) => isAtLeast(version, NATS_SERVER_MIN);

/** Throws a one-line error if the server of an outside bus is too old. */
export function checkNatsServer(address: string, version: string): void {
  if (isNatsServerSupported(version)) return;
  throw new Error(
    `Cannot use the bus at ${address}: nats-server ${NATS_SERVER_MIN} or newer is needed, it is ${version}`,
  );
}

export function findGit(environment = process.env): string {
  return newEnough("git", GIT_MIN, onPath("git", environment));
}

/**
 * Returns the browser to use. Prefers the headless shell, because it needs a third of the full browser's time and
 * memory.
 */
export function findChromium(environment = process.env, tools = TOOLS): string {
  const named = environment.TRUNKLINE_CHROMIUM;
  if (named !== undefined && named !== "") return chromiumAt(named);
  const names = ["chromium-headless-shell", "chrome-headless-shell"];
  const shells = names.flatMap((name) => onPath(name, environment));
  const downloaded = globSync(join(tools, "chrome-headless-shell/*/*/chrome-headless-shell"));
  const full = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const browsers = full.flatMap((name) => onPath(name, environment));
  const found = [...shells, ...downloaded, ...browsers].find(isExecutable);
  if (found !== undefined) return found;
  throw new Error(`Cannot find Chromium: none is on PATH or in ${tools}`);
}

/**
 * Checks the browser that the setting names. Without the check, a wrong path would fail later with an unclear error.
 */
function chromiumAt(path: string): string {
  const found = `found "${path}"`;
  if (!isExecutable(path))
    throw new Error(`TRUNKLINE_CHROMIUM: expected the path of a Chromium, ${found}`);
  if (/chrom/i.test(outputOf(resolve(path)))) return path;
  throw new Error(`TRUNKLINE_CHROMIUM: expected the path of a Chromium, ${found}, which is none`);
}

/** Returns the user's cache folder according to the XDG Base Directory Specification. */
export function cacheFolder({ XDG_CACHE_HOME: named, HOME: home } = process.env): string {
  const folder = named?.startsWith("/") ? named : join(home || homedir(), ".cache");
  return join(folder, "trunkline");
}

function newEnough(name: string, versionMin: string, paths: string[]): string {
  const found: string[] = [];
  for (const path of paths.filter(isExecutable)) {
    const version = versionOf(path);
    if (isAtLeast(version, versionMin)) return path;
    found.push(`${path} is ${version}`);
  }
  const what = found.length > 0 ? found.join(", ") : "none was found";
  throw new Error(`Cannot find ${name}: ${versionMin} or newer is needed, ${what}`);
}

export function isAtLeast(version: string, versionMin: string): boolean {
  return version.localeCompare(versionMin, "en", { numeric: true }) >= 0;
}

/** Returns the paths of all programs with this name in the folders of PATH, in order. */
function onPath(name: string, environment: NodeJS.ProcessEnv): string[] {
  const folders = (environment.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, name)).filter(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // Missing or not ours to run: the next folder may have it.
  }
}

/** Returns the first dotted number that `--version` prints. Returns 0 if the program prints none. */
function versionOf(path: string): string {
  return /\d+(\.\d+)+/.exec(outputOf(path))?.[0] ?? "0";
}

/** Returns the output of `--version`. */
function outputOf(path: string): string {
  try {
    const timeout = VERSION_MS_MAX;
    return execFileSync(path, ["--version"], { encoding: "utf8", stdio: "pipe", timeout });
  } catch {
    return ""; // Not a program of this machine; the caller names it in its error.
  }
}
