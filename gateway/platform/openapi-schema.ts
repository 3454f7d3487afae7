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
  return rest;
}

/** Returns the fields of a query or path in the form that a client sends. */
export function propertiesOf(schema: z.ZodType): Pick<JsonSchema, "properties" | "required"> {
  return z.toJSONSchema(schema, { io: "input", override: plain });
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
  if (format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
  // Python does not support Unicode classes in patterns, nor does JavaScript without the flag `u`.
  else if (pattern)
    jsonSchema.pattern = pattern.replaceAll("\\p{Cc}", "\\u0000-\\u001f\\u007f-\\u009f");
  for (const part of jsonSchema.allOf ?? []) {
    if (typeof part === "object") plain({ zodSchema, jsonSchema: part, path });
  }
  // Client generators support null only together with another type.
  if (jsonSchema.type === "null" && path.at(-2) !== "anyOf") {
    Object.assign(jsonSchema, { type: ["object", "null"] });
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
