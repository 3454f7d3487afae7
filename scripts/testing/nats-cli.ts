/** Gives a test the real `nats` command line: an operator's tool, built once into .tools where Go is there. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { TOOLS } from "../tools.ts";

const MODULE = join(import.meta.dirname, "natscli");
const VERSION = "0.4.0"; // As in natscli/go.mod.
const run = promisify(execFile);

/** The path of the nats CLI, or undefined where Go is missing. The first build takes a minute or more. */
export async function natsCli(): Promise<string | undefined> {
  const path = join(TOOLS, `nats-${VERSION}`);
  if (existsSync(path)) return path;
  await mkdir(TOOLS, { recursive: true });
  // Two tests may build it at once; each renames a whole file.
  const building = `${path}.${process.pid}`;
  try {
    await run("go", ["build", "-o", building, "github.com/nats-io/natscli/nats"], { cwd: MODULE });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new Error("Cannot build the nats CLI: go build failed", { cause: error });
  }
  await rename(building, path);
  return path;
}
