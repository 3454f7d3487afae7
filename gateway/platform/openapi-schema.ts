/** Converts zod schemas to JSON Schema that validators and client generators of several languages accept. */
import { z } from "zod";

type Json = Record<string, unknown>;
type JsonSchema = z.core.JSONSchema.BaseSchema;

/**
 * Converts a schema. Throws for a recursive schema: its `$defs` would not be in the document, and generated types
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

/** Removes keywords that only zod and this project understand, and adds rules that zod leaves out. */
function plain({ zodSchema, jsonSchema, path }: Overridden): void {
  const numeric = coercedNumber(zodSchema);
  if (numeric) Object.assign(jsonSchema, numeric);
  const { minimum, maximum, format, pattern } = jsonSchema;
  // Zod's own bounds of integers, which are no limits of ours.
  if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // The format or the type already says this.
  if (format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
  // Python, and JavaScript without the flag `u`, do not support Unicode classes.
  else if (pattern)
    jsonSchema.pattern = pattern.replaceAll("\\p{Cc}", "\\u0000-\\u001f\\u007f-\\u009f");
  for (const part of jsonSchema.allOf ?? []) {
    if (typeof part === "object") plain({ zodSchema, jsonSchema: part, path });
  }
  // Client generators support null only together with another type.
  if (jsonSchema.type === "null" && path.at(-2) !== "anyOf") {
    Object.assign(jsonSchema, { type: ["object", "null"] });
  }
  // Our own mark for values that must not be logged.
  delete jsonSchema.secret;
}

/**
 * Generated Python clients read a constant `true` as the text "true" and refuse the answer, so the constant is left
 * out.
 */
function plainAnswer(overridden: Overridden): void {
  plain(overridden);
  const { jsonSchema } = overridden;
  if (typeof jsonSchema.const === "boolean") delete jsonSchema.const;
}

/** Query values are text that a pipe turns into numbers. The rules are in the pipe's output schema. */
function coercedNumber(schema: z.core.$ZodType): JsonSchema | undefined {
  if (!(schema instanceof z.ZodPipe)) return undefined;
  const { in: first, out } = schema.def;
  if (!(first instanceof z.ZodNumber && first.def.coerce)) return undefined;
  const { $schema: _, ...rules } = z.toJSONSchema(out, { io: "input", override: plain });
  return rules;
}
