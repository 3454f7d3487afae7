/**
 * Stubs that replace built-in modules closed to apps. Libraries import such modules for work that an app never needs.
 * So importing one is permitted, but using it throws. The exports of each stub come from a file. The real modules are
 * never loaded here, because loading them could pass their objects to built-ins that an app has replaced.
 */
import { readFileSync } from "node:fs";
import { OPEN_BUILTINS, REPLACED_BUILTINS } from "../../../schemas/apps/open-builtins.ts";
import { harmlessParts } from "./harmless-builtins.ts";

/** The exports of a module: a line of closed-builtins.jsonl, which scripts/describe-builtins prints. */
interface BuiltinShape {
  functions: string[];
  /** Constants: numbers and texts, and lists and objects of these. */
  constants: Record<string, unknown>;
  objects: Record<string, BuiltinShape>;
}

const NOTHING: BuiltinShape = { functions: [], constants: {}, objects: {} };
const USABLE = [...OPEN_BUILTINS, ...REPLACED_BUILTINS].toSorted().join(", ");
const shapes = readShapes();

/** Returns the names that a module exports, except `default`. */
export function closedNames(name: string): string[] {
  const { functions, constants, objects } = shapes[name] ?? NOTHING;
  return [...functions, ...Object.keys(constants), ...Object.keys(objects)];
}

/** Returns a new stub for each importer, because libraries modify the modules that they import. */
export function closedBuiltin(name: string, importer?: string): object {
  const by = importer === undefined ? "" : `, which ${importer} imports`;
  const refuse = (used: string) => {
    const text = `Cannot use ${used} of node:${name}${by}: apps may use the modules ${USABLE}`;
    // The error has Node's code for access that its permissions forbid, because some libraries handle this code.
    return Object.assign(new Error(text), { code: "ERR_ACCESS_DENIED" });
  };
  return Object.assign(copyOf(shapes[name] ?? NOTHING, "", refuse), harmlessParts(name));
}

function copyOf(
  { functions, constants, objects }: BuiltinShape,
  path: string,
  refuse: (used: string) => Error,
): object {
  const copy: Record<string, unknown> = { ...structuredClone(constants) };
  for (const name of functions) copy[name] = refusing(name, path + name, refuse);
  for (const [name, shape] of Object.entries(objects)) {
    copy[name] = copyOf(shape, `${path}${name}.`, refuse);
  }
  return copy;
}

/** Returns a function that refuses to be called or constructed. A class may extend it. */
function refusing(name: string, used: string, refuse: (used: string) => Error): object {
  function stub() {
    throw refuse(used);
  }
  return Object.defineProperty(stub, "name", { value: name });
}

function readShapes(): Record<string, BuiltinShape> {
  const text = readFileSync(new URL("./closed-builtins.jsonl", import.meta.url), "utf8");
  const lines = text.trimEnd().split("\n");
  const parsed = lines.map((line): Record<string, BuiltinShape> => JSON.parse(line));
  return Object.assign(Object.create(null), ...parsed);
}
