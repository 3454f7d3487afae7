/**
 * Moves the named schemas of the OpenAPI document to `components/schemas`. Generators of clients write one class for
 * each of them, and its name is the schema's `title`.
 */

import { DATA } from "./openapi-schema.ts";

type Json = Record<string, unknown>;

/** Keywords that describe one use of a schema. They stay beside the reference. */
const OF_USE = ["description", "example", "examples", "default"];

/**
 * Returns the paths with references in place of their named schemas, and these schemas by name. The paths may refer to
 * `shared` schemas already.
 */
export function moveNamedSchemas(
  paths: Json,
  shared: readonly Json[],
): { paths: Json; schemas: Record<string, Json> } {
  const schemas = new Map<string, Json>();
  const move = (value: unknown, areKeysNames: boolean): unknown => {
    if (Array.isArray(value)) return value.map((one) => move(one, false));
    if (typeof value !== "object" || value === null) return value;
    const moved = Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        if (areKeysNames) return [key, move(inner, false)];
        return [key, DATA.has(key) ? inner : move(inner, key === "properties")];
      }),
    );
    if (areKeysNames) return moved;
    const chosen = "oneOf" in value ? { ...moved, ...discriminatorOf(value.oneOf) } : moved;
    return typeof chosen.title === "string" ? reference(chosen.title, chosen, schemas) : chosen;
  };
  move(shared, false);
  const moved = move(paths, true) as Json;
  const sorted = [...schemas].sort(([one], [other]) => (one < other ? -1 : 1));
  return { paths: moved, schemas: Object.fromEntries(sorted) };
}

/**
 * Stores the schema under its name. Throws if the name belongs to another schema already, or differs from another name
 * only in upper and lower case: generated files would overwrite each other on disks that ignore the case.
 */
function reference(name: string, given: Json, schemas: Map<string, Json>): Json {
  const { title: _, ...rest } = given;
  const ofUse = Object.fromEntries(
    OF_USE.flatMap((key) => (key in rest ? [[key, rest[key]]] : [])),
  );
  for (const key of OF_USE) delete rest[key];
  const stored = schemas.get(name);
  if (stored !== undefined && JSON.stringify(stored) !== JSON.stringify(rest)) {
    throw new Error(`Cannot document schema ${name}: another schema has this name`);
  }
  const lowerCase = name.toLowerCase();
  const alike =
    stored === undefined && [...schemas.keys()].find((one) => one.toLowerCase() === lowerCase);
  if (alike) throw new Error(`Cannot document schema ${name}: there is a schema ${alike} too`);
  schemas.set(name, rest);
  return { $ref: pathOf(name), ...ofUse };
}

/**
 * Names the field that tells the options apart, by the constant that each option has there. Without it, generated
 * clients take the first option that has the fields of the value, and send only the fields of that option.
 */
function discriminatorOf(options: unknown): Json {
  const named = options as { title?: string; properties?: Record<string, { const?: unknown }> }[];
  const fields = Object.entries(named[0]?.properties ?? {});
  const propertyName = fields.find(([, field]) => field.const !== undefined)?.[0];
  if (propertyName === undefined) return {};
  const mapping = named.map(({ title = "", properties }) => [
    properties?.[propertyName]?.const,
    pathOf(title),
  ]);
  return { discriminator: { propertyName, mapping: Object.fromEntries(mapping) } };
}

const pathOf = (name: string) => `#/components/schemas/${name}`;
