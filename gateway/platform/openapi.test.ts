import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "chai";
import { PERMISSIONS } from "../../schemas/account/permissions.ts";
import { ERRORS } from "../../schemas/errors.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { routeTable } from "../app.ts";
import { refusalsOf } from "../http/route.ts";
import { withoutReferences } from "../testing/declared-answers.ts";
import { type TestGateway, testGateway, testParts } from "../testing/test-gateway.ts";
import { openApiDocument } from "./openapi.ts";

interface Document {
  tags: readonly { name: string }[];
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
  requestBody?: { content: Record<string, { schema: BodySchema; example?: unknown }> };
  responses: Record<
    string,
    {
      description: string;
      content: Record<string, { schema: BodySchema; example?: { errors: WireError[] } }>;
    }
  >;
}

interface BodySchema {
  additionalProperties?: boolean;
  properties: Record<string, BodyField>;
}
interface BodyField {
  description?: string;
  default?: unknown;
  examples?: unknown[];
  properties?: Record<string, BodyField>;
}
interface WireError {
  code: number;
  source?: { pointer: string };
}

const routes = routeTable(testParts(memoryActors({})));
const given = openApiDocument(routes, "http://127.0.0.1") as unknown as Document;
/** The document with every named schema in the place where it is used. */
const document = { ...given, paths: withoutReferences(given.paths, given.components) } as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  // Paths of the authorization server have their own `servers` entry and are not in the route table.
  "servers" in methods
    ? []
    : Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

/**
 * Returns the parameters that follow a path directly: "token_id" for ".../tokens", because ".../tokens/{token_id}"
 * exists.
 */
function parametersBelow(path: string): string[] {
  return operations.flatMap((one) => {
    const below = one.path.startsWith(path) ? one.path.slice(path.length) : "";
    return /^\/\{(\w+)\}/.exec(below)?.[1] ?? [];
  });
}

describe("openapi", () => {
  it("openApiDocument() is OpenAPI 3.1 with every route and its alias once", () => {
    expect(document.openapi).to.match(/^3\.1\./);
    const declared = routes.flatMap(({ method, path, alias }) =>
      [path, ...(alias === undefined ? [] : [alias])].map((one) => `${method} ${one}`),
    );
    const documented = operations.map(({ method, path }) => `${method} ${path}`);
    expect(documented).to.have.members(declared);
    const tags = document.tags.map(({ name }) => name);
    expect(tags).to.include.members([...new Set(routes.map(({ tag }) => tag.name))]);
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

  it("openApiDocument() describes every answer", () => {
    for (const { operation } of operations) {
      expect(Object.keys(operation.responses)).to.include.members(["200", "401", "429", "500"]);
      for (const answer of Object.values(operation.responses)) {
        expect(answer.description).not.to.equal("");
        expect(answer.content).not.to.deep.equal({});
      }
    }
  });

  it("openApiDocument() shows of a failed rendering what a browser or its target did, not what git did", () => {
    const pdf = document.paths["/accounts/{account_id}/browser-rendering/pdf"]?.post;
    const failed = pdf?.responses["422"];
    const [error] = failed?.content["application/json"]?.example?.errors ?? [];
    expect(error?.code).to.be.within(5_000, 6_999);
    expect(failed?.description)
      .to.contain("6002: ")
      .and.not.to.match(/repositor|remote/i);
  });

  it("openApiDocument() shows no made-up errors and messages where there are none", () => {
    for (const { path, operation } of operations) {
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const { schema } = content?.["application/json"] ?? {};
        if (!status.startsWith("2") || schema === undefined) continue;
        for (const name of ["errors", "messages"]) {
          expect(schema.properties[name]?.examples, `${path} ${name}`).to.deep.equal([[]]);
        }
      }
    }
  });

  it("openApiDocument() names no bound that nobody chose", () => {
    expect(JSON.stringify(document)).not.to.contain(String(Number.MAX_SAFE_INTEGER));
  });

  it("openApiDocument() lists every code", () => {
    for (const [name, { status, code }] of Object.entries(ERRORS)) {
      expect(document.info.description).to.contain(`| ${code} | ${status} | ${name} |`);
    }
  });

  it("openApiDocument() begins with what this is, and folds the codes", () => {
    const { description } = document.info;
    const [first = "", ...others] = description.split("<details>");
    expect(first)
      .to.contain("`api_token` in `data/credentials.json`")
      .and.to.contain("/pdf` prints");
    expect(first).not.to.contain("|");
    expect(others).to.have.length(1);
    expect(description).to.match(/<\/details>$/);
  });

  it("openApiDocument() says of each field of a page what it is for, and what absence comes to", () => {
    const pdf = document.paths["/accounts/{account_id}/browser-rendering/pdf"]?.post;
    const fields = pdf?.requestBody?.content["application/json"]?.schema.properties ?? {};
    const { properties: options = {} } = fields.pdfOptions ?? {};
    expect(options.scale?.default).to.equal(1);
    expect(options.format?.description).to.contain("Letter if format, width and height are absent");
    expect(options.tagged?.default).to.equal(true);
    expect(options.landscape?.default).to.equal(false);
    for (const [name, { description }] of [...Object.entries(fields), ...Object.entries(options)]) {
      expect(description, name).to.be.a("string").and.not.equal("");
    }
  });

  it("openApiDocument() says of a picture what it may be, and of each option what it is for", () => {
    const taken = document.paths["/accounts/{account_id}/browser-rendering/screenshot"]?.post;
    const types = [
      "image/png",
      "image/jpeg",
      "image/webp",
      "text/plain",
      // With a report.
      "application/json",
    ];
    expect(Object.keys(taken?.responses["200"]?.content ?? {})).to.deep.equal(types);
    expect(taken?.responses["422"]?.description).to.contain("6004: ");
    const fields = taken?.requestBody?.content["application/json"]?.schema.properties ?? {};
    const { properties: options = {} } = fields.screenshotOptions ?? {};
    expect(options.type?.default).to.equal("png");
    for (const [name, { description }] of [...Object.entries(fields), ...Object.entries(options)]) {
      expect(description, name).to.be.a("string").and.not.equal("");
    }
    expect(taken?.requestBody?.content["application/json"]).to.have.property("example");
  });

  it("openApiDocument() has the authorization server's endpoints and its flow", () => {
    const { paths, components } = document;
    const others = Object.keys(paths).filter((path) => "servers" in (paths[path] ?? {}));
    expect(others).to.include.members([
      "/oauth2/auth",
      "/oauth2/token",
      "/oauth2/revoke",
      "/oauth2/introspect",
      "/oauth2/userinfo",
      "/.well-known/openid-configuration",
    ]);
    expect(components.securitySchemes.oauth).to.have.nested.property(
      "flows.authorizationCode.tokenUrl",
      "http://127.0.0.1/oauth2/token",
    );
  });

  it("openApiDocument() holds only what validators and generators of clients understand", () => {
    const lint = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return;
      for (const [key, inner] of Object.entries(value)) {
        // The names below `properties` are names of fields. All other names are keywords of JSON Schema.
        if (!path.endsWith("/properties")) {
          expect(key, path).not.to.be.oneOf(["secret", "$defs", "$schema"]);
        }
        // openapi-generator writes no type for a text with two patterns, which JSON Schema joins by allOf.
        if (key === "allOf" && Array.isArray(inner)) {
          expect(
            inner.filter((one) => "pattern" in one),
            path,
          ).to.deep.equal([]);
        }
        if (key === "pattern" && typeof inner === "string") {
          expect(() => new RegExp(inner), path).not.to.throw();
          expect(inner, path).not.to.contain("\\p{");
        }
        lint(inner, `${path}/${key}`);
      }
    };
    lint(given, "");
  });

  /** Values of query parameters in the form in which a client sends them. */
  const texts = ["", "0", "1", "-1", "1.5", "20", "25", "26", "100", "101", "1001", "100001", "x"];

  it("openApiDocument() is as strict with queries as the server", () => {
    const ajv = new Ajv2020({ coerceTypes: true, strict: false, validateFormats: false });
    for (const { path, method, operation } of operations) {
      const route = routes.find(
        (one) => [one.path, one.alias].includes(path) && one.method === method,
      );
      for (const { name, in: where, schema } of operation.parameters) {
        if (where !== "query") continue;
        const isValid = ajv.compile({ type: "object", properties: { [name]: schema } });
        for (const text of texts) {
          const parsed = route?.query.safeParse({ [name]: text });
          const faults = parsed?.error?.issues.filter((issue) => issue.path[0] === name) ?? [];
          const title = `${method} ${path}?${name}=${text}`;
          // Some validators refuse an empty text as a number, others read it as 0.
          if (text !== "") expect(isValid({ [name]: text }), title).to.equal(faults.length === 0);
        }
      }
    }
  });

  it("openApiDocument() says where values must differ", () => {
    const strict = new Ajv2020({ strict: false, validateFormats: false });
    const clients = document.paths["/accounts/{account_id}/oauth_clients"]?.post;
    const schema = clients?.requestBody?.content["application/json"]?.schema ?? {};
    const example = clients?.requestBody?.content["application/json"]?.example as {
      scopes: string[];
    };
    const isValid = strict.compile(schema);
    expect(isValid(example), JSON.stringify(isValid.errors)).to.equal(true);
    const [scope] = example.scopes;
    expect(isValid({ ...example, scopes: [scope, scope] })).to.equal(false);
  });

  it("openApiDocument() names the permissions the router checks", () => {
    for (const route of routes) {
      const operation = document.paths[route.path]?.[route.method];
      const text = JSON.stringify(operation);
      for (const permission of route.permissions ?? []) {
        expect(text).to.contain(PERMISSIONS[permission]);
      }
      const isGuarded = route.permissions !== undefined || route.isOfAdministrators === true;
      expect(refusalsOf(route).includes("forbidden")).to.equal(isGuarded);
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
  /** Tokens cannot use the routes of administrators; operations.test.ts tests these routes. */
  const isForTokens = ({ path, operation }: (typeof operations)[number]) =>
    operation.requestBody !== undefined && !path.startsWith("/installation");
  let gateway: TestGateway;
  before(async () => {
    gateway = await testGateway({ config: { publicUrl: "http://example.com:8787" } });
  });
  after(() => gateway.stop());

  it("serve the document to anybody", async () => {
    const { status, json } = await gateway.ask("/v4/openapi.json", { token: null });
    expect(status).to.equal(200);
    expect(json).to.deep.include({ servers: [{ url: "http://example.com:8787/v4" }] });
    expect(json).to.have.property("paths").that.has.all.keys(Object.keys(document.paths));
  });

  it("serve the document compressed, and not again to those who have it", async () => {
    const ask = (headers: Record<string, string>) =>
      fetch(`${gateway.url}/v4/openapi.json`, { headers });
    const plain = await ask({ "Accept-Encoding": "identity" });
    const compressed = await ask({ "Accept-Encoding": "gzip" });
    expect(plain.headers.get("content-encoding")).to.equal(null);
    expect(compressed.headers.get("content-encoding")).to.equal("gzip");
    expect(compressed.headers.get("vary")).to.equal("Accept-Encoding");
    expect(await compressed.json()).to.deep.equal(await plain.json());
    const etag = plain.headers.get("etag") ?? "";
    expect((await ask({ "If-None-Match": etag })).status).to.equal(304);
    expect((await ask({ "If-None-Match": '"other"' })).status).to.equal(200);
  });

  it("hold examples that work as they are", async () => {
    const bodies = operations.filter(isForTokens);
    expect(bodies.length).to.be.at.least(3);
    // The ids of created resources. The route table lists the route that creates a resource before the routes that
    // change it.
    const made = new Map([["account_id", gateway.accountId]]);
    for (const { path, method, operation } of bodies) {
      const json = operation.requestBody?.content["application/json"]?.example;
      expect(json, `${path}: its body needs .meta({ example })`).to.be.an("object");
      const filled = `/v4${path.replaceAll(/\{(\w+)\}/g, (_, name) => made.get(name) ?? name)}`;
      const answer = await gateway.ask(filled, { method: method.toUpperCase(), json });
      expect(answer.status, answer.text).to.equal(200);
      expect(gateway.answered).to.include(`${operation.operationId} 200`);
      const result = answer.json?.result ?? {};
      for (const name of parametersBelow(path)) {
        const id = result[name] ?? result.id;
        if (id !== undefined) made.set(name, id);
      }
    }
  });

  it("hold examples of refusals as they are answered", async () => {
    const bodies = operations.filter(isForTokens);
    for (const { path, method, operation } of bodies) {
      const filled = path
        .replace("{account_id}", gateway.accountId)
        .replaceAll(/\{\w+\}/g, "0".repeat(32));
      const example = operation.requestBody?.content["application/json"]?.example as object;
      const answer = await gateway.ask(`/v4${filled}`, {
        method: method.toUpperCase(),
        json: { ...example, colour: "red" },
      });
      const [error] = answer.json?.errors ?? [];
      const [shown] =
        operation.responses["400"]?.content["application/json"]?.example?.errors ?? [];
      expect(shown?.source, path).to.deep.equal({ pointer: "/colour" });
      expect(error, path).to.deep.equal(shown);
    }
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

  it("serve a page whose links begin with the path of the public URL", async () => {
    const publicUrl = "http://example.com:8787/tools";
    const below = await testGateway({ config: { publicUrl } });
    const { text } = await below.ask("/docs", { token: null });
    const sources = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, source]) => source);
    expect(sources).to.have.length(4);
    for (const source of sources) expect(source).to.match(/^\/tools\/docs\//);
    const script = await below.ask("/docs/start.js", { token: null });
    await below.stop();
    expect(script.text).to.contain('"/tools/v4/openapi.json"');
  });

  it("serve nothing else of that folder", async () => {
    for (const name of ["package.json", "index.html", "..%2fpackage.json", "swagger-ui.css.map"]) {
      expect((await gateway.ask(`/docs/${name}`, { token: null })).status).to.equal(404);
    }
  });
});
