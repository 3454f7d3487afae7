/**
 * Prints the shapes of the built-in modules that are closed to apps, for actors/apps/process/closed-builtins.jsonl:
 * run it with the pinned Node when that changes.
 */
import { builtinModules } from "node:module";
import { bareName, OPEN_BUILTINS, REPLACED_BUILTINS } from "../../schemas/apps/open-builtins.ts";

/** Deeper ones are parts of instances, which no library reads while it loads. */
const DEPTH_MAX = 3;
/** Longer lists are left empty: no library reads root certificates while it loads. */
const LIST_CHARS_MAX = 10_000;

interface Shape {
  functions: string[];
  constants: Record<string, unknown>;
  objects: Record<string, Shape>;
}

const usable = new Set<string>([...OPEN_BUILTINS, ...REPLACED_BUILTINS]);
// Names with a leading _ are internal to Node, and deprecated as imports.
const closed = builtinModules.map(bareName).filter((name) => !usable.has(name) && !/^_/.test(name));
for (const name of [...new Set(closed)].toSorted()) {
  const shape = shapeOf(process.getBuiltinModule(`node:${name}`) as object, 0);
  console.log(JSON.stringify({ [name]: shape }));
}

function shapeOf(value: object, depth: number): Shape {
  const shape: Shape = { functions: [], constants: {}, objects: {} };
  const isInstance = depth > 0 && !isPlain(value);
  for (const name of namesOf(value)) {
    const one = (value as Record<string, unknown>)[name];
    if (isData(one)) {
      // The fields of an instance differ between processes.
      if (!isInstance) shape.constants[name] = isLong(one) ? [] : (one ?? null);
    } else if (typeof one === "object" && one !== null) {
      if (depth < DEPTH_MAX) shape.objects[name] = shapeOf(one, depth + 1);
    } else shape.functions.push(name);
  }
  return shape;
}

/** The names of an object and of its classes. A leading _ marks what is Node's own. */
function namesOf(value: object): string[] {
  if (typeof value === "function") return Object.keys(value).toSorted();
  const names = new Set<string>();
  for (let at: object = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  }
  const left = [...names].filter((name) => !/^(_.*|default|constructor|prototype)$/.test(name));
  return left.toSorted();
}

function isPlain(value: object): boolean {
  return Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

function isLong(value: unknown): boolean {
  return Array.isArray(value) && JSON.stringify(value).length > LIST_CHARS_MAX;
}

/** Whether JSON can say it. */
function isData(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value !== "object") return ["string", "number", "boolean"].includes(typeof value);
  const values = Object.values(value);
  return isPlain(value) && values.length > 0 && values.every(isData);
}
