/** Gives a test a program that is written in Go, built once into .tools where Go is there. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { TOOLS } from "../tools.ts";

const run = promisify(execFile);
const POLL_MS = 200;

/** Without C, debug information and, for tests, inlined functions, a build takes two thirds of the processor time. */
const FLAGS = ["-ldflags=-s -w"];
const FLAGS_OF_TESTS = ["-gcflags=all=-l"];
const ENVIRONMENT = { CGO_ENABLED: "0" };

export interface GoTool {
  name: string;
  /** The version in the go.mod of `folder`. */
  version: string;
  package: string;
  /** Beside this file. */
  folder: string;
  /** Built as fast as Go can make it, for benchmarks. */
  isOptimized?: boolean;
}

/** Returns the tool's path, or undefined where Go is missing. The first build takes a minute or more. */
export async function goTool(tool: GoTool): Promise<string | undefined> {
  const path = join(TOOLS, `${tool.name}-${tool.version}${tool.isOptimized ? "-optimized" : ""}`);
  await mkdir(TOOLS, { recursive: true });
  while (!existsSync(path)) {
    // Two files that need it at once would do the same work twice.
    const lock = `${path}.lock`;
    if (!(await isOurs(lock))) {
      await wait(POLL_MS);
      continue;
    }
    try {
      if (!existsSync(path) && !(await build(tool, path))) return undefined;
    } finally {
      await rm(lock, { force: true });
    }
  }
  return path;
}

/** Returns false where Go is missing. */
async function build(tool: GoTool, path: string): Promise<boolean> {
  // A build that is broken off leaves no tool.
  const building = `${path}.${process.pid}`;
  const flags = [...FLAGS, ...(tool.isOptimized ? [] : FLAGS_OF_TESTS)];
  const cwd = join(import.meta.dirname, tool.folder);
  const env = { ...process.env, ...ENVIRONMENT };
  try {
    await run("go", ["build", ...flags, "-o", building, tool.package], { cwd, env });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw new Error(`Cannot build ${tool.name}: go build failed`, { cause: error });
  }
  await rename(building, path);
  return true;
}

/** Takes the lock, a link whose target is its holder's process id, unless that process lives. */
async function isOurs(lock: string): Promise<boolean> {
  try {
    await symlink(String(process.pid), lock);
    return true;
  } catch {
    const holder = Number(await readlink(lock).catch(() => "0"));
    if (holder > 0 && !isAlive(holder)) await rm(lock, { force: true });
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
