/** The OpenAPI 3.1 document of the route table. */
import { z } from "zod";
import { ERRORS, type ErrorCode } from "../schemas/errors.ts";
import { Failure, successOf } from "../schemas/http/envelope.ts";
import { PERMISSIONS } from "../schemas/permissions.ts";
import { type Route, refusalsOf } from "./route.ts";

type Json = Record<string, unknown>;

export function openApiDocument(routes: readonly Route[], baseUrl: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const place = (path: string, id: string) => {
      paths[path] = { ...paths[path], [route.method]: operationOf(route, id) };
    };
    place(route.path, route.id);
    if (route.alias !== undefined) place(route.alias, `${route.id}Alias`);
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Trunkline",
      version: "4",
      description: `Every error has one of these codes:\n\n${codeTable()}`,
    },
    servers: [{ url: baseUrl }],
    security: [{ token: [] }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "An API token of the account" },
      },
      schemas: { Failure: jsonSchema(Failure, "output") },
    },
  };
}

function codeTable(): string {
  const rows = Object.entries(ERRORS).map(
    ([name, { status, code, meaning }]) => `| ${code} | ${status} | ${name} | ${meaning} |`,
  );
  return ["| code | status | name | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function operationOf(route: Route, operationId: string): Json {
  const needed = (route.permissions ?? []).map((permission) => PERMISSIONS[permission]);
  return {
    operationId,
    tags: [route.tag],
    summary: route.summary,
    description: needed.length > 0 ? `Needs the permission ${needed.join(" or ")}.` : "Any token.",
    // Read by machines: what `description` says to people.
    "x-permissions": route.permissions ?? [],
    parameters: [...parametersOf(route.parameters, "path"), ...parametersOf(route.query, "query")],
    ...(route.body
      ? {
          requestBody: {
            required: true,
            description: `At most ${route.body.bytesMax} bytes`,
            content: { "application/json": { schema: jsonSchema(route.body.schema, "input") } },
          },
        }
      : {}),
    responses: { "200": answerOf(route), ...refusalAnswers(route) },
  };
}

function parametersOf(schema: z.ZodType, where: "path" | "query"): Json[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" });
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = typeof property === "object" ? property : {};
    return {
      name,
      in: where,
      required: where === "path" || required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

function answerOf(route: Route): Json {
  const headers = headersOf(route);
  if ("mediaType" in route.answer) {
    const { mediaType, description } = route.answer;
    return { description, headers, content: { [mediaType]: {} } };
  }
  const schema = successOf(route.answer.result, route.answer.paged ?? false);
  return {
    description: "Done",
    headers,
    content: { "application/json": { schema: jsonSchema(schema, "output") } },
  };
}

function refusalAnswers(route: Route): Json {
  const byStatus = Map.groupBy(new Set(refusalsOf(route)), (name) => ERRORS[name].status);
  const answers = [...byStatus].map(([status, names]) => [
    String(status),
    {
      description: names.map(describe).join("; "),
      headers: {
        ...headersOf(route),
        ...(status === 429 || status === 503 ? { "Retry-After": header("Seconds to wait") } : {}),
        ...(status === 401 ? { "WWW-Authenticate": header("As in RFC 6750") } : {}),
      },
      content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
    },
  ]);
  return Object.fromEntries(answers);
}

function describe(name: ErrorCode): string {
  return `${ERRORS[name].code}: ${ERRORS[name].meaning}`;
}

function headersOf(route: Route): Json {
  return {
    "X-Request-Id": header("The request's id, as in the logs"),
    ...(route.rendering
      ? { "X-Browser-Ms-Used": header("Milliseconds a browser was held", "integer") }
      : {}),
  };
}

function header(description: string, type = "string"): Json {
  return { description, schema: { type } };
}

function jsonSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, reused: "inline" });
  return rest;
}
