/** Builds a Go program for tests, if Go is installed. The program is built only once and stored in .tools. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { TOOLS } from "../tools.ts";
import { withLock } from "./process-lock.ts";

const run = promisify(execFile);

/**
 * Builds without C, without debug information and, for tests, without inlined functions. This takes two thirds of the
 * processor time of a normal build.
 */
const FLAGS = ["-ldflags=-s -w"];
/**
 * The packages that scripts/setup compiles if it must build nats-server itself. Tools build them with the same flags,
 * and the nats CLI requires the same versions, so Go takes them from its cache. nats-server alone is a third of the
 * CLI.
 */
const BUILT_BY_SETUP = [
  "std",
  "github.com/antithesishq/...",
  "github.com/klauspost/compress/...",
  "github.com/minio/highwayhash/...",
  "github.com/nats-io/jwt/v2/...",
  "github.com/nats-io/nats-server/v2/...",
  "github.com/nats-io/nkeys/...",
  "github.com/nats-io/nuid/...",
  "golang.org/x/crypto/...",
  "golang.org/x/sys/...",
  "golang.org/x/time/...",
];
/** Go applies the last of these flags that matches a package. */
const FLAGS_OF_TESTS = [
  "-gcflags=all=-l",
  ...BUILT_BY_SETUP.map((packages) => `-gcflags=${packages}=`),
];
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
  if (existsSync(path)) return path;
  await mkdir(TOOLS, { recursive: true });
  // Takes a lock, because two test files that need the tool at the same time would otherwise both build it.
  return await withLock(`${path}.lock`, async () =>
    existsSync(path) || (await build(tool, path)) ? path : undefined,
  );
}

/** Builds the tool and moves it to `path`. Returns false if Go is not installed. */
async function build(tool: GoTool, path: string): Promise<boolean> {
  // Builds into a temporary file, so that an interrupted build leaves no incomplete tool.
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
