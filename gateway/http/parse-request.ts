/** Parses a client's input. This is the only place where a ZodError becomes a 400. */
import { z } from "zod";
import { ActorError } from "../../schemas/errors.ts";
import { FAULTS_MAX } from "../../schemas/limits.ts";
import { meantName } from "../../schemas/nearest-name.ts";
import { expectedValue } from "./expected-value.ts";
import { shortened } from "./shortened.ts";

/** Limits the characters of the message of one fault. The longest of our own messages has about 400. */
export const FAULT_TEXT_CHARS_MAX = 1_024;

/**
 * Parses a value. `root` is its JSON pointer: "" for the body, "/query" or "/path". Throws `invalid_request` with one
 * entry for each fault.
 */
export function parseRequest<S extends z.ZodType>(
  schema: S,
  value: unknown,
  root: "" | "/query" | "/path" | `/header/${string}`,
): z.output<S> {
  const parsed = schema.safeParse(value, {
    error: (issue) => describe(issue, root === "/query" ? value : undefined),
  });
  if (parsed.success) return parsed.data;
  throw new ActorError("invalid_request", "Cannot accept request: see its faults", {
    faults: firstFaults(parsed.error.issues, root),
  });
}

/** Converts zod's issues to faults. Each unknown field becomes a separate fault with its own pointer. */
function firstFaults(issues: readonly z.core.$ZodIssue[], root: string) {
  const faults: { pointer: string; message: string }[] = [];
  for (const issue of issues) {
    const paths =
      issue.code === "unrecognized_keys"
        ? issue.keys.slice(0, FAULTS_MAX).map((key) => [...issue.path, key])
        : [issue.path];
    for (const path of paths) {
      if (faults.length === FAULTS_MAX) return faults;
      const pointer = shortened(root + pointerTo(path));
      const meant = issue.code === "unrecognized_keys" ? meantBy(issue, String(path.at(-1))) : "";
      const text = shortened(issue.message + meant, FAULT_TEXT_CHARS_MAX);
      faults.push({ pointer, message: `Cannot accept ${pointer || "body"}: ${text}` });
    }
  }
  return faults;
}

/** Writes a JSON pointer (RFC 6901 section 3). */
function pointerTo(path: readonly PropertyKey[]): string {
  return path
    .map((step) => `/${shortened(String(step)).replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}

/**
 * Returns words for a valid value, if the schema has no message of its own. Zod's messages only say what is wrong.
 */
function describe(issue: z.core.$ZodRawIssue, query: unknown): string | undefined {
  const expected = issue.schema && expectedValue(issue.schema);
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.inst instanceof z.ZodObject
        ? unknownField(Object.keys(issue.inst.shape))
        : undefined;
    case "invalid_type":
      if (issue.input === undefined) return `Missing, expected ${expected ?? "a value"}`;
      return expectedText(expected, issue, query);
    case "invalid_union":
      return unionText(issue, expected) ?? expectedText(expected, issue, query);
    // The key of the record is invalid. The schema of the keys describes valid names.
    case "invalid_key":
      return issue.issues[0]?.message;
    case "invalid_format":
      return expectedText(formatted(issue, expected), issue, query);
    case "not_multiple_of":
      return `Expected a multiple of ${issue.divisor}`;
    default:
      return expectedText(expected, issue, query);
  }
}

function expectedText(
  expected: string | undefined,
  issue: z.core.$ZodRawIssue,
  query: unknown,
): string {
  return `Expected ${expected ?? "another value"}${sentIn(query, issue)}`;
}

/** Describes a refused value of a query by the text that the client sent. */
function sentIn(query: unknown, { path }: z.core.$ZodRawIssue): string {
  const name = String(path?.[0]);
  const sent = Object.entries(query ?? {}).find(([known]) => known === name)?.[1];
  return sent === undefined ? "" : `, not ${shortened(JSON.stringify(sent))}`;
}

/** Describes the faults of those alternatives of a union that the client probably meant. */
function unionText(
  issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidUnion>,
  expected: string | undefined,
): string | undefined {
  if (issue.discriminator !== undefined) {
    const options = Array.isArray(issue.options) ? issue.options : [];
    return `Expected one of ${options.map(String).join(", ")}`;
  }
  const firsts = issue.errors.flatMap(([first]) => (first ? [first] : []));
  const meant = firsts.filter(({ code, path }) => code !== "invalid_type" || path.length > 0);
  const issues = meant.length > 0 ? meant : expected === undefined ? firsts : [];
  if (issues.length === 0) return undefined;
  return [...new Set(issues.map(({ message }) => message))].join("; or: ");
}

function formatted(
  issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidStringFormat>,
  expected: string | undefined,
): string | undefined {
  const { format, prefix, suffix, includes, pattern } = issue as z.core.$ZodRawIssue & {
    format: string;
  } & Partial<Record<"prefix" | "suffix" | "includes" | "pattern", string>>;
  if (prefix !== undefined) return `a text that begins with ${JSON.stringify(prefix)}`;
  if (suffix !== undefined) return `a text that ends with ${JSON.stringify(suffix)}`;
  if (includes !== undefined) return `a text that contains ${JSON.stringify(includes)}`;
  if (format === "regex") return `a text that matches ${pattern}`;
  return expected;
}

/** Returns a sentence with the existing field whose name is nearest to `key`; empty if none is near. */
function meantBy({ message }: z.core.$ZodIssueUnrecognizedKeys, key: string): string {
  const [, known = ""] = /expected one of (.+)$/.exec(message) ?? [];
  const meant = meantName(shortened(key), known === "" ? [] : known.split(", "));
  return meant === "" ? "" : `; is ${meant} meant?`;
}

/** The message for a field that the schema does not have. */
export function unknownField(known: readonly string[]): string {
  // Only a query can have a schema without any field.
  const expected = known.length === 0 ? "no query" : `one of ${known.join(", ")}`;
  return `Unknown field, expected ${expected}`;
}
