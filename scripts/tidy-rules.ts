/**
 * The rules of the repository that a program can check. Each rule takes one source file or all of them, and returns
 * descriptions of the violations.
 */
import { posix } from "node:path";
import { isTest, type SourceFile } from "./tidy-files.ts";
import { importsOf } from "./tidy-rooms.ts";

const LINES_MAX = 400;
const BUS_FOLDERS = ["actors/runtime/", "deploy/", "scripts/"];
const TEST_PACKAGES = new Set(["chai", "mocha"]);
/**
 * Variables of the bus's configuration, which our own code or the operator of a cluster sets. No code reads them, so the
 * rule about undocumented variables skips them.
 */
const OWN_VARIABLES = new Set([
  "TRUNKLINE_NATS_NAME",
  "TRUNKLINE_NATS_LISTEN",
  "TRUNKLINE_NATS_STORE",
  "TRUNKLINE_NATS_PASSWORD",
  "TRUNKLINE_NATS_SYSTEM_PASSWORD",
  "TRUNKLINE_NATS_CLUSTER_LISTEN",
  "TRUNKLINE_NATS_MONITOR_LISTEN",
  "TRUNKLINE_NATS_ROUTES",
]);

/** Rule: only the runtime and the set-up of the bus may import NATS packages. */
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

/** Rule: each file begins with a comment that states its purpose. In a test, the text of `describe` states it. */
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

/** Rule: no file contains a path of the machine on which it was written. */
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
    : [`${path} has ${lines} lines, more than ${LINES_MAX}`];
}

/** Rule: every environment variable that the code reads is documented, and every documented one is read. */
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

function variablesOf(files: SourceFile[]): Set<string> {
  const names = files.flatMap(({ text }) => text.match(/\bTRUNKLINE_[A-Z\d_]*[A-Z\d]\b/g) ?? []);
  return new Set(names);
}

/** Returns one violation for each matching line. */
function faults(path: string, text: string, pattern: RegExp): string[] {
  return text
    .split("\n")
    .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : []));
}
