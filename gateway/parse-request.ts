/** Parses what a client sent; the only place where a ZodError becomes a 400. */
import { z } from "zod";
import { ActorError } from "../schemas/errors.ts";
import { FAULT_TEXT_CHARS_MAX, FAULTS_MAX } from "../schemas/limits.ts";
import { shortened } from "./shortened.ts";

/** `root` says where the value stood: "" for the body, "/query", "/path". Throws `invalid_request`, a fault each. */
export function parseRequest<S extends z.ZodType>(
  schema: S,
  value: unknown,
  root: "" | "/query" | "/path",
): z.output<S> {
  const parsed = schema.safeParse(value, {
    error: (issue) =>
      describe(issue) ?? (root === "/query" ? describeNumber(issue, value) : undefined),
  });
  if (parsed.success) return parsed.data;
  throw new ActorError("invalid_request", "Cannot accept request: see its faults", {
    faults: firstFaults(parsed.error.issues, root),
  });
}

/** One fault an unknown field, so that each has its pointer. */
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
      const text = shortened(issue.message, FAULT_TEXT_CHARS_MAX);
      faults.push({ pointer, message: `Cannot accept ${pointer || "body"}: ${text}` });
    }
  }
  return faults;
}

/** RFC 6901 section 3. */
function pointerTo(path: readonly PropertyKey[]): string {
  return path
    .map((step) => `/${shortened(String(step)).replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}

/** Says what would be valid where zod itself only says what is wrong. */
function describe(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === "unrecognized_keys" && issue.inst instanceof z.ZodObject) {
    return unknownField(Object.keys(issue.inst.shape));
  }
  if (issue.code === "invalid_type" && issue.input === undefined) {
    return `Missing, expected ${issue.expected}`;
  }
  if (issue.code === "invalid_union") {
    const options = issue.errors.flatMap(([first]) => (first ? [first.message] : []));
    if (options.length > 0) return [...new Set(options)].join("; or: ");
  }
  return undefined;
}

/** What is said of a field that is none of these. */
export function unknownField(known: readonly string[]): string {
  // Bodies and paths that are read have fields: only a query can be expected to be none.
  const expected = known.length === 0 ? "no query" : `one of ${known.join(", ")}`;
  return `Unknown field, expected ${expected}`;
}

/** A query holds text, which is no number any more by the time zod refuses it. */
function describeNumber(issue: z.core.$ZodRawIssue, query: unknown): string | undefined {
  if (issue.code !== "invalid_type" || typeof issue.input !== "number") return undefined;
  const name = String(issue.path?.[0]);
  const sent = Object.entries(query ?? {}).find(([known]) => known === name)?.[1];
  const expected = issue.expected === "int" ? "a whole number" : "a number";
  return `Expected ${expected}, not ${shortened(JSON.stringify(sent))}`;
}
