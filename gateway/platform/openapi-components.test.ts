/** Tests that generators of clients can write code from the whole OpenAPI document, with all areas. */
import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import { z } from "zod";
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

/**
 * Fields whose presence changes or refuses other fields, or whose absence has a meaning of its own. They may have no
 * default in the document, because generated clients send every default.
 */
const WITHOUT_DEFAULT = {
  // The server ignores width and height if there is a format.
  PdfOptions: ["format", "width", "height"],
  // Endpoints for one document, and crawls, wait for different events if the field is absent.
  GotoOptions: ["waitUntil"],
  Viewport: ["deviceScaleFactor", "isMobile", "hasTouch", "isLandscape"],
  // With type png the server refuses a quality.
  ScreenshotOptions: ["quality", "clip"],
  PictureOptions: ["quality", "clip"],
  // The server accepts one source, and refuses a second.
  RenderPdfRequest: ["url", "html", "files", "sources", "viewport", "device", "gotoOptions"],
  // Its default depends on `root`.
  GetAccessibilityTreeRequest: ["interestingOnly", "root"],
  // Without a browser the server refuses these fields.
  StartCrawlRequest: [
    ...["addStyleTag", "addScriptTag", "viewport", "gotoOptions", "goToOptions", "waitForSelector"],
    ...["waitForTimeout", "actionTimeout", "bestAttempt", "emulateMediaType"],
    ...["setJavaScriptEnabled", "rejectResourceTypes", "rejectRequestPattern"],
    ...["allowResourceTypes", "allowRequestPattern", "jsonOptions"],
  ],
  // Without depth the server imports all commits, and without branch all branches.
  ImportRepoRequest: ["depth", "branch"],
};

/**
 * Fields whose default only the document states: the schema leaves them undefined. The code that reads them must treat
 * undefined and the default alike.
 */
const DEFAULT_IN_DOCUMENT_ONLY = [
  ...["report", "scrollPage", "excludeExternalLinks", "visibleLinksOnly"],
  ...["landscape", "printBackground", "preferCSSPageSize", "displayHeaderFooter", "scale"].map(
    (name) => `pdfOptions.${name}`,
  ),
  ...["pdfOptions.omitBackground", "pdfOptions.tagged", "pdfOptions.outline"],
  ...["fullPage", "clip.scale", "omitBackground", "captureBeyondViewport", "optimizeForSpeed"].map(
    (name) => `screenshotOptions.${name}`,
  ),
  ...["options.includeExternalLinks", "options.includeSubdomains"],
];

/** Returns the fields of a body that have a default in the document which the schema itself does not apply. */
function documentOnlyDefaults(body: z.ZodType): string[] {
  const found: string[] = [];
  z.toJSONSchema(body, {
    io: "input",
    override({ zodSchema, jsonSchema: { default: stated }, path }) {
      // The document states a default that is an object only in words.
      if (stated === undefined || (typeof stated === "object" && !Array.isArray(stated))) return;
      const applied = z.safeParse(zodSchema, undefined);
      if (applied.success && isDeepStrictEqual(applied.data, stated)) return;
      found.push(path.filter((_, at) => path[at] !== "properties").join("."));
    },
  });
  return found;
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

  it("openApiDocument() has no default for a field whose presence changes or refuses others", () => {
    for (const [name, fields] of Object.entries(WITHOUT_DEFAULT)) {
      const { properties = {} } = given.components.schemas[name] ?? {};
      for (const field of fields) {
        expect(properties, name).to.have.property(field);
        expect(properties, name).not.to.have.nested.property(`${field}.default`);
      }
    }
  });

  it("openApiDocument() has only defaults that the schemas apply, and the listed ones", () => {
    const found = routes.flatMap(({ body }) => (body ? documentOnlyDefaults(body.schema) : []));
    expect([...new Set(found)]).to.have.members(DEFAULT_IN_DOCUMENT_ONLY);
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
