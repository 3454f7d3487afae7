/** The house rules a machine can check. Each takes one source file, or all of them, and names its faults. */
import { posix } from "node:path";

export interface SourceFile {
  /** From the repository's root, with slashes. */
  path: string;
  text: string;
}

const LINES_MAX = 400;
/** What the gateway may know of actors: how to ask, what is stored, what happens, the work it does on packs, sealed secrets, bodies, and to end a wait. */
const GATEWAY_TAKES = new Set([
  "actors/app-secrets/secret-box.ts",
  "actors/app-bodies/body-blobs.ts",
  "actors/runtime/actor-client.ts",
  "actors/runtime/answer.ts",
  "actors/runtime/blob-store.ts",
  "actors/runtime/define-worker.ts",
  "actors/runtime/live.ts",
  "actors/runtime/stored-lines.ts",
  "actors/runtime/time-limit.ts",
]);
/** Folders of actors/ that are no kind: anything in actors/ may use them, and they use only each other. */
const SHARED_FOLDERS = new Set([
  "app-secrets",
  "app-bodies",
  "browser",
  "egress",
  "event-log",
  "extract",
  "hashes",
  "robots",
  "runtime",
  "sitemap",
]);
/** Wires all kinds together. */
const ACTORS_MAIN = "actors/main.ts";
/** How an app's process is started: the only file of agents/ that another part knows. */
const AGENTS_ARGUMENTS = "agents/process/arguments.ts";
const BUS_FOLDERS = ["actors/runtime/", "deploy/", "scripts/"];
const TEST_PACKAGES = new Set(["chai", "mocha"]);
/** Read by the bus's configuration: our own code sets them, and whoever runs a cluster. */
const OWN_VARIABLES = new Set([
  "TRUNKLINE_NATS_NAME",
  "TRUNKLINE_NATS_LISTEN",
  "TRUNKLINE_NATS_STORE",
  "TRUNKLINE_NATS_PASSWORD",
  "TRUNKLINE_NATS_SYSTEM_PASSWORD",
  "TRUNKLINE_NATS_PASSWORD",
  "TRUNKLINE_NATS_SYSTEM_PASSWORD",
  "TRUNKLINE_NATS_CLUSTER_LISTEN",
  "TRUNKLINE_NATS_MONITOR_LISTEN",
  "TRUNKLINE_NATS_ROUTES",
  "TRUNKLINE_NATS_MONITOR_LISTEN",
]);

/** Tests and measurements, their helpers and suites: they may reach wherever they need, and nothing reaches them. */
export const isTest = (path: string) =>
  /\.(test|contract)\.ts$/.test(path) || /(^|\/)(testing|bench)\//.test(path);

/** Imports point one way: gateway → schemas, actors → schemas, agents → schemas, and kinds meet only there. */
export function importsPointOneWay({ path, text }: SourceFile): string[] {
  if (isTest(path)) return [];
  return importsOf(path, text)
    .filter((target) => !mayImport(path, target))
    .map((target) => `${path} imports ${target}`);
}

/** Only the runtime, and what sets the bus up, knows NATS. */
export function onlyRuntimeKnowsNats({ path, text }: SourceFile): string[] {
  if (isTest(path) || BUS_FOLDERS.some((folder) => path.startsWith(folder))) return [];
  return importsOf(path, text)
    .filter((target) => target.startsWith("@nats-io/"))
    .map((target) => `${path} imports ${target}`);
}

export function productionImportsNoTest({ path, text }: SourceFile): string[] {
  if (isTest(path)) return [];
  return importsOf(path, text)
    .filter((target) => isTest(target) || TEST_PACKAGES.has(target))
    .map((target) => `${path} imports ${target}`);
}

/** A file begins by saying what it is for; of a test its `describe` says it. */
export function opensWithSentence({ path, text }: SourceFile): string[] {
  if (path.endsWith(".test.ts")) return [];
  const opening = /^(#!.*\n)?\/\*\*\s(?:(?!\*\/)[\s\S])*?[.?!:]\s*\*\//.test(text);
  return opening ? [] : [`${path} does not open with a sentence in /** … */`];
}

export function debtsNameAnIssue({ path, text }: SourceFile): string[] {
  return faults(
    path,
    text,
    new RegExp(`\\b(${"TO"}DO(?!\\([^)\\s]+\\): \\S)|${"FIX"}ME|${"X"}XX)\\b`),
  );
}

/** Nothing may depend on, or tell of, the machine it was written on. */
export function namesNoMachinePath({ path, text }: SourceFile): string[] {
  const folders = /(^|[^\w.$}-])\/(work|farm|root|home\/\w+|Users\/\w+|tmp\/w)\//;
  return [...faults(path, text, folders), ...faults(path, text, /"resolved": *"https?:/)];
}

export function isNamedInKebabCase({ path }: SourceFile): string[] {
  const name = posix.basename(path);
  const good = /^[a-z\d]+(-[a-z\d]+)*(\.[a-z\d]+(-[a-z\d]+)*)*\.ts$/.test(name);
  return good ? [] : [`${path} is not named in kebab-case`];
}

export function isShort({ path, text }: SourceFile): string[] {
  const lines = text.trimEnd().split("\n").length;
  return isTest(path) || lines <= LINES_MAX
    ? []
    : [`${path} has ${lines} lines, past ${LINES_MAX}`];
}

/** Every variable the code reads is documented, and every documented one is read. */
export function variablesAreDocumented(sources: SourceFile[], documents: SourceFile[]): string[] {
  const read = variablesOf(sources.filter(({ path }) => !isTest(path)));
  const documented = variablesOf(documents);
  for (const own of OWN_VARIABLES) read.delete(own);
  return [
    ...[...read.difference(documented)].map((name) => `${name} is read but not documented`),
    ...[...documented.difference(read.union(OWN_VARIABLES))].map(
      (name) => `${name} is documented but not read`,
    ),
  ];
}

/** What a file imports: a path from the root for a file of ours, else the package's name. */
function importsOf(path: string, text: string): string[] {
  const specifiers = text.matchAll(
    /^(?:import|export)\s(?:[^"';]*?\sfrom\s)?"([^"]+)"|\bimport\(\s*"([^"]+)"/gm,
  );
  return Array.from(specifiers, ([, named, dynamic]) => named ?? dynamic ?? "").map((specifier) =>
    specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : specifier,
  );
}

function mayImport(path: string, target: string): boolean {
  const [source] = path.split("/");
  const ours = /^(schemas|agents|actors|gateway|deploy|scripts)\//.exec(target)?.[1];
  // re2js reads the patterns that requests bring: a schema must know a bad one.
  if (source === "schemas") return ours === "schemas" || target === "zod" || target === "re2js";
  if (source === "agents") return ours === undefined || ours === "schemas" || ours === "agents";
  // What starts and sets up reaches everything but the code that runs in processes of apps.
  if (ours === "agents") return target === AGENTS_ARGUMENTS && source === "actors";
  if (ours === undefined || ours === "schemas" || source === "deploy" || source === "scripts")
    return true;
  if (source === "gateway") return ours === "gateway" || GATEWAY_TAKES.has(target);
  if (ours !== "actors") return false;
  if (path === ACTORS_MAIN) return true;
  const folderOf = (file: string) => file.split("/")[1] ?? "";
  const targetFolder = folderOf(target);
  return targetFolder === folderOf(path) || SHARED_FOLDERS.has(targetFolder);
}

function variablesOf(files: SourceFile[]): Set<string> {
  const names = files.flatMap(({ text }) => text.match(/\bTRUNKLINE_[A-Z\d_]*[A-Z\d]\b/g) ?? []);
  return new Set(names);
}

/** One fault for each line that matches. */
function faults(path: string, text: string, pattern: RegExp): string[] {
  return text
    .split("\n")
    .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : []));
}
