/** Converts zod schemas to JSON Schema that validators and client generators of several languages accept. */
import { z } from "zod";

type Json = Record<string, unknown>;
type JsonSchema = z.core.JSONSchema.BaseSchema;

/**
 * Converts a schema. Throws if the schema is recursive: the document would lack its `$defs`, and generated types
 * would not compile.
 */
export function jsonSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const override = io === "input" ? plain : plainAnswer;
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, reused: "inline", override });
  if ("$defs" in rest) throw new Error("Cannot document schema: it is recursive");
  return forGenerators(rest) as Json;
}

/** Returns the fields of a query or path in the form that a client sends. */
export function propertiesOf(schema: z.ZodType): Pick<JsonSchema, "properties" | "required"> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", override: plain });
  return forGenerators(rest) as Pick<JsonSchema, "properties" | "required">;
}

interface Overridden {
  zodSchema: z.core.$ZodType;
  jsonSchema: JsonSchema;
  path: (string | number)[];
}

/** Removes keywords that only zod and this project understand, and adds rules that zod does not convert. */
function plain({ zodSchema, jsonSchema, path }: Overridden): void {
  const numeric = coercedNumber(zodSchema);
  if (numeric) Object.assign(jsonSchema, numeric);
  const { minimum, maximum, format, pattern } = jsonSchema;
  // Zod adds the range of safe integers to every integer. This is no limit of the API.
  if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // The pattern is redundant, because the format or the type already describes the values.
  if (/^date/.test(format ?? "") || jsonSchema.type === "integer") delete jsonSchema.pattern;
  // Python does not support Unicode classes in patterns, nor does JavaScript without the flag `u`.
  else if (pattern)
    jsonSchema.pattern = pattern.replaceAll("\\p{Cc}", "\\u0000-\\u001f\\u007f-\\u009f");
  for (const part of jsonSchema.allOf ?? []) {
    if (typeof part === "object") plain({ zodSchema, jsonSchema: part, path });
  }
  // Client generators support null only together with another type, and an object only with rules for its fields.
  // `const: null` would say that the server always sends null. No tried generator reads it, and with it
  // openapi-generator keeps unknown fields of the object around it in Go and Python.
  if (jsonSchema.type === "null" && path.at(-2) !== "anyOf") {
    Object.assign(jsonSchema, { type: ["object", "null"], additionalProperties: {} });
  }
  // `secret` is this project's mark for values that must not be logged.
  delete jsonSchema.secret;
}

/**
 * Removes constants `true` and `false`. Generated Python clients read a constant `true` as the text "true" and then
 * refuse the answer.
 */
function plainAnswer(overridden: Overridden): void {
  plain(overridden);
  const { jsonSchema } = overridden;
  if (typeof jsonSchema.const === "boolean") delete jsonSchema.const;
}

/** Rewrites a schema and all schemas in it to forms that every generator of clients reads. */
function forGenerators(value: unknown, areKeysNames = false): unknown {
  if (Array.isArray(value)) return value.map((one) => forGenerators(one));
  if (typeof value !== "object" || value === null) return value;
  const inner = Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      const isData = !areKeysNames && DATA.has(key);
      return [key, isData ? one : forGenerators(one, !areKeysNames && key === "properties")];
    }),
  );
  return areKeysNames ? inner : withoutNullOption(withDefaultInWords(inner));
}

/** Keywords whose values are data of clients, not schemas. */
export const DATA = new Set(["default", "example", "examples", "enum", "const"]);

/** Generated Go does not compile with a default that is an object. */
function withDefaultInWords(schema: Json): Json {
  const { default: value, description, ...rest } = schema;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return schema;
  const words = `Defaults to ${JSON.stringify(value)}`;
  return { ...rest, description: description === undefined ? words : `${description}. ${words}` };
}

/**
 * Moves the option `null` of `anyOf` into the type of another option. Generated Python has no class for null alone.
 * An option with `enum` or `const` would still forbid null, and one with a name is a component that other places use.
 */
function withoutNullOption(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const options = (anyOf as Json[]).filter(({ type }) => type !== "null");
  const at = options.findIndex(
    (one) => typeof one.type === "string" && !["enum", "const", "title"].some((key) => key in one),
  );
  const chosen = options[at];
  if (options.length === anyOf.length || chosen === undefined) return schema;
  const nullable = { ...chosen, type: [chosen.type, "null"] };
  return options.length === 1
    ? { ...nullable, ...rest }
    : { ...rest, anyOf: options.with(at, nullable) };
}

/**
 * Returns the rules of a number in a query. A query value is a text that a zod pipe converts to a number; the rules
 * are in the output schema of the pipe.
 */
function coercedNumber(schema: z.core.$ZodType): JsonSchema | undefined {
  if (!(schema instanceof z.ZodPipe)) return undefined;
  const { in: first, out } = schema.def;
  if (!(first instanceof z.ZodNumber && first.def.coerce)) return undefined;
  const { $schema: _, ...rules } = z.toJSONSchema(out, { io: "input", override: plain });
  return rules;
}
