import { expect } from "chai";
import { ERRORS } from "../schemas/errors.ts";
import { PERMISSIONS } from "../schemas/permissions.ts";
import { memoryActors } from "../scripts/testing/memory-actors.ts";
import { routeTable } from "./app.ts";
import { openApiDocument } from "./openapi.ts";
import { refusalsOf } from "./route.ts";
import { type TestGateway, testConfig, testGateway } from "./testing/test-gateway.ts";

interface Document {
  openapi: string;
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
  security: Record<string, unknown>[];
}
interface Operation {
  operationId: string;
  summary: string;
  tags: string[];
  parameters: { name: string; in: string; required: boolean; schema: object }[];
  requestBody?: { content: Record<string, { schema: { additionalProperties?: boolean } }> };
  responses: Record<string, { description: string; content: object }>;
}

const routes = routeTable({ actors: memoryActors({}), config: testConfig, now: Date.now });
const document = openApiDocument(routes, "http://127.0.0.1/v4") as unknown as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

describe("openapi", () => {
  it("openApiDocument() is OpenAPI 3.1 with every route and its alias once", () => {
    expect(document.openapi).to.match(/^3\.1\./);
    const declared = routes.flatMap(({ method, path, alias }) =>
      [path, ...(alias === undefined ? [] : [alias])].map((one) => `${method} ${one}`),
    );
    const documented = operations.map(({ method, path }) => `${method} ${path}`);
    expect(documented).to.have.members(declared);
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it("openApiDocument() declares each path's parameters, and no other", () => {
    for (const { path, operation } of operations) {
      const inPath = operation.parameters.filter((parameter) => parameter.in === "path");
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(
        inPath.map(({ name }) => name),
        path,
      ).to.have.members(names);
      for (const { required } of inPath) expect(required).to.equal(true);
    }
  });

  it("openApiDocument() describes every answer, and refers to nothing that is not there", () => {
    for (const { operation } of operations) {
      expect(Object.keys(operation.responses)).to.include.members(["200", "401", "429", "500"]);
      for (const answer of Object.values(operation.responses)) {
        expect(answer.description).not.to.equal("");
        expect(answer.content).not.to.deep.equal({});
      }
    }
    const text = JSON.stringify(document);
    const references = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, target]) => target);
    expect(new Set(references)).to.deep.equal(new Set(["#/components/schemas/Failure"]));
    expect(document.components.schemas).to.have.property("Failure");
  });

  it("openApiDocument() lists every code", () => {
    for (const [name, { status, code }] of Object.entries(ERRORS)) {
      expect(document.info.description).to.contain(`| ${code} | ${status} | ${name} |`);
    }
  });

  it("openApiDocument() names the permissions the router checks", () => {
    for (const route of routes) {
      const operation = document.paths[route.path]?.[route.method];
      const text = JSON.stringify(operation);
      for (const permission of route.permissions ?? []) {
        expect(text).to.contain(PERMISSIONS[permission]);
      }
      expect(refusalsOf(route).includes("forbidden")).to.equal(route.permissions !== undefined);
    }
  });

  it("openApiDocument() says that bodies take no unknown field", () => {
    for (const { operation } of operations) {
      const schema = operation.requestBody?.content["application/json"]?.schema;
      if (schema) expect(schema.additionalProperties).to.equal(false);
    }
  });
});

describe("routes of docs", () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await testGateway({ config: { publicUrl: "http://example.com:8787" } });
  });
  after(() => gateway.stop());

  it("serve the document to anybody", async () => {
    const { status, json } = await gateway.ask("/v4/openapi.json", { token: null });
    expect(status).to.equal(200);
    expect(json).to.deep.include({ servers: [{ url: "http://example.com:8787/v4" }] });
    expect(json).to.have.property("paths").that.deep.equals(document.paths);
  });

  it("serve a page that loads nothing from elsewhere, and a policy that forbids it", async () => {
    const page = await gateway.ask("/docs", { token: null });
    expect(page.status).to.equal(200);
    expect(page.headers.get("content-type")).to.contain("text/html");
    const sources = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, source]) => source);
    expect(sources).to.have.length(4);
    for (const source of sources) {
      expect(source).to.match(/^\/docs\//);
      expect((await gateway.ask(source ?? "", { token: null })).status).to.equal(200);
    }
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).to.contain("default-src 'none'").and.to.contain("script-src 'self'");
    expect(policy).not.to.match(/https?:|\*|unsafe-eval|script-src[^;]*unsafe/);
  });

  it("serve nothing else of that folder", async () => {
    for (const name of ["package.json", "index.html", "..%2fpackage.json", "swagger-ui.css.map"]) {
      expect((await gateway.ask(`/docs/${name}`, { token: null })).status).to.equal(404);
    }
  });
});
