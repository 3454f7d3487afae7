/** Tests that generators of clients can write code from the whole OpenAPI document, with all areas. */
import { expect } from "chai";
import { GIT_SIZES } from "../../schemas/repositories/git-sizes.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { routeTable } from "../app.ts";
import { testParts } from "../testing/test-gateway.ts";
import { openApiDocument } from "./openapi.ts";
import { moveNamedSchemas } from "./openapi-components.ts";

type Json = Record<string, unknown>;

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json> };
}
interface Operation {
  operationId?: string;
  responses?: Record<string, { content?: Record<string, { schema?: Json }> }>;
}

// The table only declares the routes of these areas; the tests make no request.
const areas = {
  apps: {},
  devtools: {},
  operations: {},
  repositories: { parts: { sizes: GIT_SIZES } },
};
const routes = routeTable({ ...testParts(memoryActors({})), ...(areas as object) });
const given = openApiDocument(routes, "http://127.0.0.1") as unknown as Document;
const operations = Object.values(given.paths).flatMap((methods) => Object.values(methods));

/** Names what generators of clients (openapi-generator in Go, Python and TypeScript) do not understand in a schema. */
function faultsOf({ type, default: byDefault, oneOf, anyOf, discriminator, ...schema }: Json) {
  const isObject = typeof byDefault === "object" && byDefault !== null && !Array.isArray(byDefault);
  const options = [oneOf, anyOf].flat() as (Json | undefined)[];
  const isNullable = Array.isArray(type) && type.includes("object");
  return [
    isObject && "Go has no literal of an object, so the default must be in the description",
    (type === "null" || options.some((one) => one?.type === "null")) &&
      "Python has no class of null alone, so null must be in the type of an option",
    isNullable &&
      !("properties" in schema || "additionalProperties" in schema) &&
      "Python needs the type of the fields of an object that may be null",
    oneOf !== undefined &&
      (oneOf as Json[]).some((one) => !("$ref" in one)) &&
      "TypeScript imports only options that have names",
    oneOf !== undefined &&
      discriminator === undefined &&
      "TypeScript takes the first option of which the value has the required fields",
    schema.format === "date" && "pattern" in schema && "Python has no pattern for a date",
  ].filter((fault) => fault !== false);
}

describe("openapi for generators", () => {
  it("openApiDocument() accepts the names of the schemas of all areas", () => {
    // A name that is refused makes openApiDocument() throw, above, and in a platform at the first request.
    const paths = Object.keys(given.paths).join(" ");
    for (const part of ["/accounts/{", "/browser-rendering/", "/jobs/", "/devtools/", "/crawl/"]) {
      expect(paths).to.contain(part);
    }
    for (const part of ["/artifacts/", "/oauth_clients/", "/apps/", "/installation/"]) {
      expect(paths).to.contain(part);
    }
  });

  it("openApiDocument() names the schemas that it refers to, and no others", () => {
    const references = [...JSON.stringify(given).matchAll(/"\$ref":"([^"]*)"/g)];
    const names = Object.keys(given.components.schemas);
    expect([...new Set(references.map(([, target]) => target))]).to.have.members(
      names.map((name) => `#/components/schemas/${name}`),
    );
    expect(names).to.include.members(["Failure", "PageAction", "PdfOptions", "RenderPdfRequest"]);
  });

  it("openApiDocument() holds only schemas of which generators write code that compiles", () => {
    const lint = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return;
      const isSchema = !path.endsWith("/properties") && !/\/examples?(\/|$)/.test(path);
      if (isSchema) expect(faultsOf(value as Json), path).to.deep.equal([]);
      for (const [key, inner] of Object.entries(value)) lint(inner, `${path}/${key}`);
    };
    lint(given.paths, "/paths");
    lint(given.components.schemas, "/schemas");
  });

  it("openApiDocument() gives every answer with bytes or text a schema", () => {
    for (const { operationId, responses = {} } of operations) {
      for (const [status, { content = {} }] of Object.entries(responses)) {
        for (const [type, { schema }] of Object.entries(content)) {
          // Without a schema, generated clients discard the body. JSON of any form and pages for people need none.
          if (["application/json", "text/html"].includes(type)) continue;
          expect(schema, `${operationId} ${status} ${type}`).to.be.an("object");
        }
      }
    }
    const pdf = operations.find(({ operationId }) => operationId === "renderPdf");
    const { schema } = pdf?.responses?.["200"]?.content?.["application/pdf"] ?? {};
    expect(schema).to.include({ format: "binary" });
  });

  it("moveNamedSchemas() refuses one name for two schemas", () => {
    const paths = {
      one: { title: "Page", type: "string", description: "One use" },
      other: { title: "Page", type: "string", description: "Another use" },
    };
    const reference = { $ref: "#/components/schemas/Page" };
    expect(moveNamedSchemas(paths, [])).to.deep.equal({
      paths: {
        one: { ...reference, description: "One use" },
        other: { ...reference, description: "Another use" },
      },
      schemas: { Page: { type: "string" } },
    });
    const third = { title: "Page", type: "integer" };
    expect(() => moveNamedSchemas({ ...paths, third }, [])).to.throw("Cannot document schema Page");
  });

  it("moveNamedSchemas() refuses names that differ only in upper and lower case", () => {
    const paths = { one: { title: "PdfPage", type: "string" } };
    const other = { title: "PDFPage", type: "string" };
    expect(() => moveNamedSchemas({ ...paths, other }, [])).to.throw(
      "Cannot document schema PDFPage: there is a schema PdfPage too",
    );
  });
});
