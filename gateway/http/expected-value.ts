/** Describes in plain words what a schema accepts, for error messages. */
import { z } from "zod";

type Json = z.core.JSONSchema.BaseSchema;

const phrases = new WeakMap<z.core.$ZodType, string | undefined>();

/**
 * Returns words that follow "expected", such as "a text of 1 to 100 characters"; undefined when the schema accepts
 * anything or has no description.
 */
export function expectedValue(schema: z.core.$ZodType): string | undefined {
  if (!phrases.has(schema)) {
    phrases.set(
      schema,
      phraseOf(
        z.toJSONSchema(schema, { io: "input", reused: "inline", unrepresentable: "any" }) as Json,
      ),
    );
  }
  return phrases.get(schema);
}

function phraseOf(schema: Json): string | undefined {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return oneOf(schema.enum.map(String));
  const options = schema.anyOf ?? schema.oneOf;
  if (options !== undefined) {
    const phrases = options.map((option) => phraseOf(option as Json));
    return phrases.includes(undefined) ? undefined : [...new Set(phrases)].join(" or ");
  }
  switch (schema.type) {
    case "string":
      return textPhrase(schema);
    case "integer":
      return `a whole number${numbers(schema)}`;
    case "number":
      return `a number${numbers(schema)}`;
    case "boolean":
      return "true or false";
    case "array":
      return arrayPhrase(schema);
    case "object":
      return objectPhrase(schema);
    case "null":
      return "null";
    default:
      return undefined;
  }
}

const oneOf = (values: readonly string[]) =>
  values.length === 1 ? JSON.stringify(values[0]) : `one of ${values.join(", ")}`;

const FORMATS: Readonly<Record<string, string>> = {
  uri: "an absolute URL",
  email: "an e-mail address",
  "date-time": "a time with its zone, as in 2026-11-20T12:00:00Z",
};

function textPhrase({ format, minLength, maxLength }: Json): string {
  const noun = FORMATS[format ?? ""] ?? "a text";
  return noun + counts(minLength, maxLength, "character");
}

function arrayPhrase({ items, minItems, maxItems }: Json): string {
  const each = items && !Array.isArray(items) ? (items as Json) : undefined;
  // An object gets no description here, because faults inside it have their own messages.
  const phrase = each === undefined || each.type === "object" ? undefined : phraseOf(each);
  return `an array${counts(minItems, maxItems, "item")}${phrase ? `, each ${phrase}` : ""}`;
}

function objectPhrase({ required = [] }: Json): string {
  return required.length === 0 ? "an object" : `an object with ${required.join(", ")}`;
}

function counts(least = 0, most: number | undefined, noun: string): string {
  const of = (count: number) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  if (most === undefined) return least === 0 ? "" : ` of at least ${of(least)}`;
  if (least === 0) return ` of at most ${of(most)}`;
  return least === most ? ` of ${of(most)}` : ` of ${least} to ${of(most)}`;
}

function numbers({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Json): string {
  const least = chosen(minimum);
  const most = chosen(maximum);
  if (least !== undefined && most !== undefined) return ` from ${least} to ${most}`;
  const bounds = [
    least === undefined ? [] : [`of at least ${least}`],
    exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`],
    most === undefined ? [] : [`of at most ${most}`],
    exclusiveMaximum === undefined ? [] : [`below ${exclusiveMaximum}`],
  ].flat();
  return bounds.length === 0 ? "" : ` ${bounds.join(" and ")}`;
}

/**
 * Returns the bound of an integer unless it is zod's own. Zod limits every integer to the safe range of a double;
 * this is no limit of the API, so messages omit it.
 */
function chosen(bound: number | undefined): number | undefined {
  return bound === undefined || Math.abs(bound) === Number.MAX_SAFE_INTEGER ? undefined : bound;
}
