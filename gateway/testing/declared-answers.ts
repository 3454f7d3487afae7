/** Holds answers against the OpenAPI document: what is not declared there must not be answered. */
import assert from "node:assert/strict";
import { z } from "zod";

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

/** Returns the operation's id and status, or undefined when the document has no such operation. Throws on a lie. */
export function checkDeclared(document: unknown, answer: GivenAnswer): string | undefined {
  // Whether it is a sound document is tested elsewhere.
  const { paths, components } = document as Document;
  const { method, path, status, type, body } = answer;
  const steps = path.split("?")[0]?.split("/") ?? [];
  const template = Object.keys(paths)
    // A fixed step goes before a parameter.
    .toSorted(
      (one, other) =>
        Number(one.includes("{")) - Number(other.includes("{")) ||
        one.split("{").length - other.split("{").length,
    )
    .find((known) => matches(known.split("/"), steps));
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
  if (content.schema) {
    const reference = "$ref" in content.schema ? String(content.schema.$ref) : undefined;
    const schema = reference
      ? components.schemas[reference.slice("#/components/schemas/".length)]
      : content.schema;
    assert(schema, `${name} refers to nothing`);
    const parsed = z.fromJSONSchema(schema).safeParse(body);
    assert(parsed.success, `${name} is declared otherwise: ${parsed.error}`);
  }
  return name;
}

function matches(template: readonly string[], steps: readonly string[]): boolean {
  return (
    template.length === steps.length &&
    template.every((step, index) => step.startsWith("{") || step === steps[index])
  );
}
