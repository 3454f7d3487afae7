/**
 * Bundles the console's program for browsers. Set-up does this in advance. If it has not, or if the sources have
 * changed, the gateway does it at the first request.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { OutputFile } from "esbuild";
import { COLORS } from "../pages/style.ts";
import { exampleApp, exampleFiles } from "./example-app.ts";

const ROOT = join(import.meta.dirname, "../..");
const SOURCES = join(import.meta.dirname, "app");
const ENTRY = join(SOURCES, "main.tsx");
const KEPT = join(ROOT, ".tools/console.json");
/** The file with the bundle in the npm package, which does not contain the console's sources. */
export const PACKAGED_CONSOLE = "console.json";
/** Packages that only the bundle contains. An installation that has the bundle does not need them. */
export const BUNDLED_PACKAGES = ["preact", "lowlight", "highlight.js"];
/** A new version of one of these packages makes a new bundle. */
const PACKAGES = [...BUNDLED_PACKAGES, "marked", "esbuild", "htmlparser2"];

export interface ConsoleFile {
  /** Contains a hash of the content. */
  name: string;
  text: string;
}

export interface ConsoleBundle {
  /** Hash of all inputs of the bundle: source files and package versions. */
  sources: string;
  script: string;
  style: string;
  files: ConsoleFile[];
}

/** Returns the bundle of the present sources. Builds it if no stored bundle matches. */
export async function consoleBundle(kept = KEPT): Promise<ConsoleBundle> {
  const packaged = await readKept(join(import.meta.dirname, PACKAGED_CONSOLE));
  if (packaged) return packaged;
  const sources = hashOfSources();
  const found = await readKept(kept);
  if (found?.sources === sources) return found;
  const made = { sources, ...(await bundle()) };
  await keep(kept, made).catch(() => {
    // A failed write is ignored: a container's files may be read-only, and then the next process builds the bundle
    // again.
  });
  return made;
}

async function readKept(path: string): Promise<ConsoleBundle | undefined> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as ConsoleBundle;
  } catch {
    // The file is missing, or it is incomplete because the disk was full.
    return undefined;
  }
}

/** Replaces the file atomically, because several processes may start together. */
async function keep(path: string, made: ConsoleBundle): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, JSON.stringify(made));
  await rename(draft, path);
}

async function bundle(): Promise<Omit<ConsoleBundle, "sources">> {
  // Loads esbuild only if there is no matching stored bundle.
  const { build, stop } = await import("esbuild");
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: { console: ENTRY },
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    outdir: "out",
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    banner: { css: COLORS },
    legalComments: "none",
    write: false,
    plugins: [exampleApp],
  });
  // Ends the process that esbuild started.
  await stop();
  const files = outputFiles.map(fileOf);
  return { script: nameOf(files, ".js"), style: nameOf(files, ".css"), files };
}

const fileOf = ({ path, text }: OutputFile): ConsoleFile => ({
  name: path.slice(path.lastIndexOf("/") + 1),
  text,
});

function nameOf(files: readonly ConsoleFile[], ending: string): string {
  const found = files.find(({ name }) => name.startsWith("console-") && name.endsWith(ending));
  if (!found) throw new Error(`Cannot bundle console: no ${ending} came out`);
  return found.name;
}

function hashOfSources(): string {
  const hash = createHash("sha256").update(COLORS);
  hash.update(readFileSync(fileURLToPath(import.meta.url)));
  for (const name of PACKAGES) {
    hash.update(readFileSync(join(ROOT, "node_modules", name, "package.json")));
  }
  const names = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .filter((one) => /\.(tsx?|css)$/.test(one))
    .toSorted()
    .map((name) => join(SOURCES, name));
  for (const path of [...names, ...exampleFiles()]) {
    hash.update(`${relative(ROOT, path)}\n`).update(readFileSync(path));
  }
  return hash.digest("hex");
}
