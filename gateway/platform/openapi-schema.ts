/** Zod schemas as JSON Schema that validators and generators of clients of several languages take. */
import { z } from "zod";

type Json = Record<string, unknown>;
type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Refuses a recursive schema: its `$defs` would be no part of the document, and generated types would not compile. */
export function jsonSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const override = io === "input" ? plain : plainAnswer;
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, reused: "inline", override });
  if ("$defs" in rest) throw new Error("Cannot document schema: it is recursive");
  return rest;
}

/** The fields of a query or path as a client sends them. */
export function propertiesOf(schema: z.ZodType): Pick<JsonSchema, "properties" | "required"> {
  return z.toJSONSchema(schema, { io: "input", override: plain });
}

interface Overridden {
  zodSchema: z.core.$ZodType;
  jsonSchema: JsonSchema;
  path: (string | number)[];
}

/** Removes what only zod and we understand, and adds the rules that zod leaves out. */
function plain({ zodSchema, jsonSchema, path }: Overridden): void {
  const numeric = coercedNumber(zodSchema);
  if (numeric) Object.assign(jsonSchema, numeric);
  const { minimum, maximum, format, pattern } = jsonSchema;
  // Bounds of whole numbers that nobody chose.
  if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // The format says it, or the type.
  if (format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
  // Python, and JavaScript without the flag `u`, know no classes of Unicode.
  else if (pattern)
    jsonSchema.pattern = pattern.replaceAll("\\p{Cc}", "\\u0000-\\u001f\\u007f-\\u009f");
  for (const part of jsonSchema.allOf ?? []) {
    if (typeof part === "object") plain({ zodSchema, jsonSchema: part, path });
  }
  // Generators of clients know null only beside another type.
  if (jsonSchema.type === "null" && path.at(-2) !== "anyOf") {
    Object.assign(jsonSchema, { type: ["object", "null"] });
  }
  // Our own mark of what must not be logged.
  delete jsonSchema.secret;
}

/** Generated Python clients take a constant true for the text "true", and refuse the answer. */
function plainAnswer(overridden: Overridden): void {
  plain(overridden);
  const { jsonSchema } = overridden;
  if (typeof jsonSchema.const === "boolean") delete jsonSchema.const;
}

/** A query holds text, which is read as a number first: the rules are those of the schema behind. */
function coercedNumber(schema: z.core.$ZodType): JsonSchema | undefined {
  if (!(schema instanceof z.ZodPipe)) return undefined;
  const { in: first, out } = schema.def;
  if (!(first instanceof z.ZodNumber && first.def.coerce)) return undefined;
  const { $schema: _, ...rules } = z.toJSONSchema(out, { io: "input", override: plain });
  return rules;
}
