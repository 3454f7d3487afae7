/**
 * Compares answers with the OpenAPI document: the gateway must not send an answer that the document does not declare.
 */
import assert from "node:assert/strict";
import { z } from "zod";
import type { Route } from "../http/route.ts";
import { openApiDocument } from "../platform/openapi.ts";

type JsonSchema = Exclude<Parameters<typeof z.fromJSONSchema>[0], boolean>;

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema> };
}

interface Operation {
  operationId: string;
  responses: Record<string, { content?: Record<string, { schema?: JsonSchema }> }>;
}

export interface GivenAnswer {
  method: string;
  /** Below the document's server. */
  path: string;
  status: number;
  type: string;
  body: unknown;
}

/** Making a document takes as long as hundreds of requests, so the gateways of a process share those of equal routes. */
const documents = new Map<string, ReturnType<typeof openApiDocument>>();
const templates = new WeakMap<object, string[]>();
const schemas = new WeakMap<object, z.ZodType>();

/** The document of these routes, made when it is first needed. It names a server of its own. */
export function declaredBy(routes: readonly Route[]): ReturnType<typeof openApiDocument> {
  const key = routes.map(({ id }) => id).join();
  let document = documents.get(key);
  if (document === undefined) {
    document = openApiDocument(routes, "http://127.0.0.1");
    documents.set(key, document);
  }
  return document;
}

/**
 * Returns the operation's id and status, or undefined if the document has no such operation. Throws if the answer
 * does not match the document.
 */
export function checkDeclared(document: unknown, answer: GivenAnswer): string | undefined {
  // Another test verifies that the document is valid.
  const { paths, components } = document as Document;
  const { method, path, status, type, body } = answer;
  const steps = path.split("?")[0]?.split("/") ?? [];
  const template = templatesOf(paths).find((known) => matches(known.split("/"), steps));
  const operation = paths[template ?? ""]?.[method.toLowerCase()];
  if (!operation) return undefined;
  const name = `${operation.operationId} ${status}`;
  const declared = operation.responses[status];
  assert(declared, `${name} is not declared`);
  if (!declared.content) {
    assert(body === undefined && type === "", `${name} is declared without a body`);
    return name;
  }
  const [mediaType = ""] = type.split(";");
  const content = declared.content[mediaType] ?? declared.content["*/*"];
  assert(content, `${name} is declared without ${mediaType}`);
  if (content.schema && mediaType === "application/json") {
    const parsed = parserOf(content.schema, components).safeParse(body);
    assert(parsed.success, `${name} is declared otherwise: ${parsed.error}`);
  }
  return name;
}

/** The paths, those with a fixed step before those with a parameter in its place. */
function templatesOf(paths: Document["paths"]): string[] {
  let sorted = templates.get(paths);
  if (sorted === undefined) {
    sorted = Object.keys(paths).toSorted(
      (one, other) =>
        Number(one.includes("{")) - Number(other.includes("{")) ||
        one.split("{").length - other.split("{").length,
    );
    templates.set(paths, sorted);
  }
  return sorted;
}

function parserOf(schema: JsonSchema, components: Document["components"]): z.ZodType {
  let parser = schemas.get(schema);
  if (parser === undefined) {
    parser = z.fromJSONSchema(withoutReferences(schema, components) as JsonSchema);
    schemas.set(schema, parser);
  }
  return parser;
}

/** Puts the named schemas of a document in the place of its references to them. */
export function withoutReferences(
  value: unknown,
  components: { schemas: Record<string, unknown> },
): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutReferences(one, components));
  if (typeof value !== "object" || value === null) return value;
  if (!("$ref" in value)) {
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([key, one]) => [key, withoutReferences(one, components)]),
    );
  }
  const { $ref, ...beside } = value as { $ref: string };
  const named = components.schemas[$ref.replace("#/components/schemas/", "")];
  assert(named, `${$ref} leads to nothing`);
  return { ...(withoutReferences(named, components) as object), ...beside };
}

function matches(template: readonly string[], steps: readonly string[]): boolean {
  return (
    template.length === steps.length &&
    template.every((step, index) => step.startsWith("{") || step === steps[index])
  );
}
