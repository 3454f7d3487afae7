/** Gives a test a program that is written in Go, built once into .tools where Go is there. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { TOOLS } from "../tools.ts";

const run = promisify(execFile);

export interface GoTool {
  name: string;
  /** The version in the go.mod of `folder`. */
  version: string;
  package: string;
  /** Beside this file. */
  folder: string;
}

/** Returns the tool's path, or undefined where Go is missing. The first build takes a minute or more. */
export async function goTool(tool: GoTool): Promise<string | undefined> {
  const path = join(TOOLS, `${tool.name}-${tool.version}`);
  if (existsSync(path)) return path;
  await mkdir(TOOLS, { recursive: true });
  // Two tests may build it at once; each renames a whole file.
  const building = `${path}.${process.pid}`;
  const cwd = join(import.meta.dirname, tool.folder);
  try {
    await run("go", ["build", "-o", building, tool.package], { cwd });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new Error(`Cannot build ${tool.name}: go build failed`, { cause: error });
  }
  await rename(building, path);
  return path;
}
