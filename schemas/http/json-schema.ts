/** Converts a shorthand JSON Schema, as people write it, to a complete schema. */
import type { z } from "zod";

type Schema = Record<string, unknown>;
type Path = PropertyKey[];
type Fault = (path: Path, message: string) => void;

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];
/**
 * Keywords of JSON Schema 2020-12 and of earlier drafts. ONE: the value is one schema. SEVERAL: a list of schemas.
 * NAMED: schemas by name.
 */
const ONE = [
  "items",
  "additionalProperties",
  "contains",
  "not",
  "if",
  "then",
  "else",
  "propertyNames",
];
const SEVERAL = ["anyOf", "oneOf", "allOf", "prefixItems"];
const NAMED = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const STRUCTURAL = new Set([
  ...ONE,
  ...SEVERAL,
  ...NAMED,
  "type",
  "enum",
  "const",
  "$ref",
  "required",
]);

/**
 * Expands a shorthand schema. The shorthand may be the name of a type, an array with one schema for the items,
 * properties without `type: object`, or only the properties. A complete schema stays unchanged. Faults are added to
 * the context.
 */
export function wholeJsonSchema(given: Schema, context: z.core.$RefinementCtx<Schema>): Schema {
  const fault: Fault = (path, message) => context.addIssue({ code: "custom", path, message });
  return rootOf(given, fault);
}

function rootOf(given: Schema, fault: Fault): Schema {
  // OpenAI's clients send an object with a name and the schema in its field `schema`.
  if (isObject(given.schema) && !isStructural(given)) return rootOf(given.schema, fault);
  const { name, ...unnamed } = given;
  if (typeof name === "string" && isStructural(unnamed) && !TYPES.includes(name)) {
    return schemaOf({ title: name, ...unnamed }, [], fault);
  }
  const values = Object.values(given);
  if (!isStructural(given) && values.length > 0 && values.every(isShorthand)) {
    return schemaOf({ properties: given }, [], fault);
  }
  return schemaOf(given, [], fault);
}

function schemaOf(given: Schema, path: Path, fault: Fault): Schema {
  checkType(given.type, [...path, "type"], fault);
  const schema: Schema = { ...given };
  if (given.type === undefined && isObject(given.properties)) schema.type = "object";
  if (given.type === undefined && given.items !== undefined) schema.type = "array";
  for (const keyword of ONE) {
    if (keyword in given) schema[keyword] = anyOf(given[keyword], [...path, keyword], fault);
  }
  for (const keyword of SEVERAL) {
    const list = given[keyword];
    if (list === undefined) continue;
    if (!Array.isArray(list)) fault([...path, keyword], "Expected an array of schemas");
    else schema[keyword] = list.map((one, index) => anyOf(one, [...path, keyword, index], fault));
  }
  for (const keyword of NAMED) {
    const named = given[keyword];
    if (named === undefined) continue;
    if (!isObject(named)) fault([...path, keyword], "Expected an object, a schema for each name");
    else {
      schema[keyword] = Object.fromEntries(
        Object.entries(named).map(([name, one]) => [
          name,
          anyOf(one, [...path, keyword, name], fault),
        ]),
      );
    }
  }
  const { required } = given;
  if (required !== undefined && !isListOfNames(required)) {
    fault([...path, "required"], "Expected an array of property names");
  }
  return schema;
}

function anyOf(given: unknown, path: Path, fault: Fault): unknown {
  if (typeof given === "boolean") return given;
  if (typeof given === "string") {
    const [, type = "", list] = /^(\w+)(\[\])?$/.exec(given) ?? [];
    checkType(type, path, fault);
    return list === undefined ? { type } : { type: "array", items: { type } };
  }
  if (Array.isArray(given) && given.length === 1) {
    return { type: "array", items: anyOf(given[0], [...path, 0], fault) };
  }
  if (isObject(given)) return schemaOf(given, path, fault);
  fault(path, `Expected a schema, or one of ${TYPES.join(", ")}`);
  return given;
}

function checkType(type: unknown, path: Path, fault: Fault): void {
  if (type === undefined) return;
  const types = Array.isArray(type) && type.length > 0 ? type : [type];
  if (!types.every((one) => TYPES.includes(one))) {
    fault(path, `Expected one of ${TYPES.join(", ")}`);
  }
}

function isShorthand(value: unknown): boolean {
  if (typeof value === "string") return TYPES.includes(value.replace(/\[\]$/, ""));
  if (Array.isArray(value)) return value.length === 1 && isShorthand(value[0]);
  return isObject(value);
}

const isStructural = (schema: Schema) => Object.keys(schema).some((key) => STRUCTURAL.has(key));

const isListOfNames = (value: unknown) =>
  Array.isArray(value) && value.every((name) => typeof name === "string");

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
