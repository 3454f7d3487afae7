/** Reads an app's configuration file, JSON with comments, and reports every fault with its line and column. */
import { readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import {
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";
import { parseRequest } from "../../gateway/http/parse-request.ts";
import { type AppConfig, NewAppConfig } from "../../schemas/apps/app-config.ts";
import { AppName } from "../../schemas/apps/app-names.ts";
import { ActorError } from "../../schemas/errors.ts";
import { CommandFailure } from "./command.ts";

export const CONFIG_FILE = "trunkline.jsonc";

export interface AppConfigFile {
  config: AppConfig;
  /** The path of the file as messages show it. */
  path: string;
  /** The folder of the configuration file. Paths in the file are relative to this folder. */
  folder: string;
}

export function readAppConfig(named = CONFIG_FILE): AppConfigFile {
  const full = resolve(named);
  const path = relative(process.cwd(), full) || named;
  const text = readText(full, path);
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (errors.length > 0 || root === undefined) {
    const faults = errors.map(({ error, offset }) => ({ offset, text: wordsOf(error) }));
    throw faulty(faults.length > 0 ? faults : [{ offset: 0, text: "expected an object" }]);
  }
  const faults = repeatedKeys(root);
  const written: unknown = getNodeValue(root);
  try {
    const config = parseRequest(NewAppConfig, written, "");
    if (faults.length === 0) return { config, path, folder: dirname(full) };
  } catch (error) {
    if (!(error instanceof ActorError && error.code === "invalid_request")) throw error;
    for (const { pointer = "", message } of error.details.faults ?? []) {
      const words = message.replace(/^Cannot accept (\S+): /, "$1: ");
      faults.push({ offset: offsetOf(root, pointer), text: words });
    }
  }
  throw faulty(faults);

  /** Makes one error of all faults, one a line, in the order of the file. */
  function faulty(all: Fault[]): CommandFailure {
    const lines = all
      .toSorted((one, other) => one.offset - other.offset)
      .map((fault) => `${path}:${placeOf(text, fault.offset)} ${fault.text}`);
    return new CommandFailure(lines.join("\n"));
  }
}

/** Reads only the name of the app, because the rest of the file may be unfinished. */
export function readAppName(named = CONFIG_FILE): string {
  const full = resolve(named);
  const path = relative(process.cwd(), full) || named;
  const root = parseTree(readText(full, path), [], { allowTrailingComma: true });
  const name = root && findNodeAtLocation(root, ["name"]);
  const read = AppName.safeParse(name?.value);
  if (read.success) return read.data;
  throw new CommandFailure(`${path}: cannot read "name": ${read.error.issues[0]?.message}`);
}

interface Fault {
  offset: number;
  text: string;
}

/** The module that is the app. */
export function mainOf({ config, path, folder }: AppConfigFile): string {
  if (config.main !== undefined) return resolve(folder, config.main);
  throw new CommandFailure(
    `${path}: expected "main", the module to bundle, such as "src/index.ts"`,
  );
}

function readText(full: string, path: string): string {
  try {
    return readFileSync(full, "utf8").replace(/^\ufeff/, "");
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const reason = isMissing
      ? "there is no such file; go to the app's folder, or name the file by --config"
      : error instanceof Error && error.message;
    throw new CommandFailure(`Cannot read ${path}: ${reason}`, { cause: error });
  }
}

/** Returns the offset of an unknown key, or of the object that lacks a value. */
function offsetOf(root: Node, pointer: string): number {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  for (let length = steps.length; length >= 0; length--) {
    const path = steps.slice(0, length).map((step) => (/^\d+$/.test(step) ? Number(step) : step));
    const found = findNodeAtLocation(root, path);
    if (found === undefined) continue;
    return found.parent?.type === "property" ? found.parent.offset : found.offset;
  }
  return root.offset;
}

/** Finds keys that an object has twice. A JSON parser would use the last one without an error. */
function repeatedKeys(node: Node): Fault[] {
  const children = node.children ?? [];
  const below = children.flatMap(repeatedKeys);
  if (node.type !== "object") return below;
  const seen = new Set<string>();
  const own = children.flatMap(({ offset, children: [key] = [] }) => {
    const name = String(key?.value);
    if (!seen.has(name)) {
      seen.add(name);
      return [];
    }
    return [{ offset, text: `"${name}" is there twice` }];
  });
  return [...own, ...below];
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}

/** Splits an error name into words: `CommaExpected` becomes `comma expected`. */
function wordsOf(error: ParseError["error"]): string {
  return printParseErrorCode(error)
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`)
    .toLowerCase();
}
