/** Generates the OpenAPI 3.1 document from the route table. */
import { z } from "zod";
import { PERMISSIONS } from "../../schemas/account/permissions.ts";
import { ERRORS, type ErrorCode } from "../../schemas/errors.ts";
import { CursorInfo, Failure, ResultInfo, successOf } from "../../schemas/http/envelope.ts";
import { WireJob } from "../../schemas/rendering/http/render-jobs.ts";
import { failure } from "../http/envelope.ts";
import { unknownField } from "../http/parse-request.ts";
import { type RefusalWording, type Route, refusalsOf } from "../http/route.ts";
import { moveNamedSchemas } from "./openapi-components.ts";
import { CLIENT_SCHEMES, OAUTH_TAG, oauthPaths, oauthScheme } from "./openapi-oauth.ts";
import { jsonSchema, propertiesOf } from "./openapi-schema.ts";

type Json = Record<string, unknown>;

export function openApiDocument(routes: readonly Route[], publicUrl: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const place = (path: string, id: string) => {
      paths[path] = { ...paths[path], [route.method]: operationOf(route, id) };
    };
    place(route.path, route.id);
    if (route.alias !== undefined) place(route.alias, `${route.id}Alias`);
  }
  const moved = moveNamedSchemas({ ...paths, ...oauthPaths(publicUrl) }, [
    named("Failure", jsonSchema(Failure, "output")),
  ]);
  return {
    openapi: "3.1.1",
    info: {
      title: "Trunkline",
      version: "4",
      description: introduction(),
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: `${publicUrl}/v4` }],
    security: [{ token: [] }, { oauth: [] }],
    tags: [...tagsOf(routes), OAUTH_TAG],
    paths: moved.paths,
    components: {
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: "The api_token in data/credentials.json, or another token of the account",
        },
        oauth: oauthScheme(publicUrl),
        ...CLIENT_SCHEMES,
      },
      schemas: moved.schemas,
    },
  };
}

function tagsOf(routes: readonly Route[]): Json[] {
  return [...new Set(routes.map(({ tag }) => tag))].map((tag) => ({ ...tag }));
}

/** Returns the document's description in Markdown. `<details>` hides parts that only few readers need. */
function introduction(): string {
  return [
    "Trunkline is a self-hosted automation platform, and this is its API. " +
      "Its token is `api_token` in `data/credentials.json`, which the first start writes: press Authorize and paste it. " +
      "Then `POST /accounts/{account_id}/browser-rendering/pdf` prints HTML or the page at a URL as a PDF, " +
      "with the `account_id` of the same file, and `POST /accounts/{account_id}/browser-rendering/crawl` walks a whole site.",
    "<details><summary>Codes of errors</summary>",
    codeTable(),
    "</details>",
  ].join("\n\n");
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
    tags: [route.tag.name],
    summary: route.summary,
    description: needed.length > 0 ? `Needs the permission ${needed.join(" or ")}.` : "Any token.",
    ...(needed.length > 0 && { security: securityOf(route) }),
    // The permissions of `description` again, in a form that programs can read.
    "x-permissions": route.permissions ?? [],
    parameters: [
      ...parametersOf(route.parameters, "path"),
      ...parametersOf(route.query, "query"),
      ...(route.mayBeJob ? [PREFER] : []),
    ],
    ...(route.body
      ? {
          requestBody: {
            required: route.body.isOptional !== true,
            description: `At most ${route.body.bytesMax} bytes`,
            content: {
              "application/json": bodyContent(route),
              ...(route.takesFiles && { "multipart/form-data": FORM_CONTENT }),
            },
          },
        }
      : {}),
    responses: {
      ...answersOf(route),
      ...(route.mayBeJob ? { "202": jobAnswer() } : {}),
      ...refusalAnswers(route),
    },
  };
}

const PREFER: Json = {
  name: "Prefer",
  in: "header",
  required: false,
  description: "respond-async: answer at once, and run the call as a job (RFC 7240)",
  schema: { type: "string" },
};

function jobAnswer(): Json {
  return {
    description: "With Prefer: respond-async, the job that the call has become",
    headers: {
      "Preference-Applied": header("respond-async"),
      Location: header("Path of the job"),
    },
    content: {
      "application/json": {
        schema: named("RenderJobResponse", jsonSchema(successOf(WireJob), "output")),
      },
    },
  };
}

const FORM_CONTENT: Json = {
  schema: {
    title: "PageFilesForm",
    type: "object",
    properties: {
      options: { type: "object", description: "All fields of the JSON body except `files`" },
      files: {
        type: "array",
        items: { type: "string", format: "binary" },
        description: "The files of the page; each file name is the file's path",
      },
    },
  },
  encoding: { options: { contentType: "application/json" } },
};

/** The token needs only one of the permissions. It can be an API token or an OAuth access token. */
const securityOf = ({ permissions = [] }: Route): Json[] => [
  { token: [] },
  ...permissions.map((permission) => ({ oauth: [permission] })),
];

/**
 * Moves the example of the schema next to the schema, where "Try it out" reads it. Zod drops `examples` of objects
 * with transformed fields, and does not know `example`.
 */
function bodyContent({ id, body }: Route): Json {
  if (body === undefined) throw new Error("Cannot document body: the route has none");
  const { examples, example, ...schema } = jsonSchema(body.schema, "input");
  const shown = Array.isArray(examples) ? examples[0] : example;
  return {
    schema: named(`${capitalized(id)}Request`, schema),
    ...(shown === undefined ? {} : { example: shown }),
  };
}

/** Names a schema. Its name is the name of a class in generated clients. */
const named = (title: string, schema: Json): Json => ({ ...schema, title });

const capitalized = (id: string) => id.charAt(0).toUpperCase() + id.slice(1);

function parametersOf(schema: z.ZodType, where: "path" | "query"): Json[] {
  const { properties = {}, required = [] } = propertiesOf(schema);
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

function answersOf(route: Route): Json {
  const headers = headersOf(route);
  if ("mediaType" in route.answer) {
    const { mediaType, description, also = {} } = route.answer;
    const content = Object.fromEntries([mediaType].flat().map((type) => [type, contentOf(type)]));
    const others = Object.entries(also).map(([status, said]) => [
      status,
      { description: said, headers, ...(status === "206" && { content }) },
    ]);
    return {
      "200": { description, headers, content },
      ...Object.fromEntries(others),
    };
  }
  if ("bare" in route.answer) {
    const schema = jsonSchema(route.answer.bare, "output");
    const isObject = schema.type === "object";
    const name = `${capitalized(route.id)}Response`;
    const content = { "application/json": { schema: isObject ? named(name, schema) : schema } };
    return { "200": { description: "Done", headers, content } };
  }
  const { status = 200 } = "result" in route.answer ? route.answer : {};
  if (status === 204) return { "204": { description: "Done", headers } };
  const { beside = {} } = "streamed" in route.answer ? route.answer : {};
  const schema = successOf(...resultOf(route.answer)).extend(beside);
  const content = {
    "application/json": {
      schema: named(`${capitalized(route.id)}Response`, jsonSchema(schema, "output")),
    },
  };
  return { [status]: { description: "Done", headers, content } };
}

/** Without a schema, generated clients discard the body. They know `format: binary`, not the empty schema of OpenAPI 3.1. */
function contentOf(mediaType: string): Json {
  if (mediaType === "application/json") return {};
  const isText = mediaType.startsWith("text/");
  return { schema: { type: "string", ...(!isText && { format: "binary" }) } };
}

function resultOf(
  answer: Exclude<Route["answer"], { mediaType: unknown } | { bare: unknown }>,
): [z.ZodType, z.ZodType?] {
  if ("streamed" in answer) return [answer.streamed];
  switch (answer.paged) {
    case "numbers":
      return [answer.result, ResultInfo];
    case "cursor":
      return [answer.result, CursorInfo];
    case "both":
      return [answer.result, z.union([ResultInfo, CursorInfo])];
    case undefined:
      return [answer.result];
    default:
      return answer.paged satisfies never;
  }
}

function refusalAnswers(route: Route): Json {
  const byStatus = Map.groupBy(new Set(refusalsOf(route)), (name) => ERRORS[name].status);
  const answers = [...byStatus].map(([status, names]) => [
    String(status),
    {
      description: names.map((name) => describe(name, route.wording)).join("; "),
      headers: {
        ...headersOf(route),
        ...(status === 429 || status === 503 ? { "Retry-After": header("Seconds to wait") } : {}),
        ...(status === 401 ? { "WWW-Authenticate": header("As in RFC 6750") } : {}),
      },
      content: {
        "application/json": {
          schema: { $ref: "#/components/schemas/Failure" },
          example: failureExample(route, names),
        },
      },
    },
  ]);
  return Object.fromEntries(answers);
}

/** Shows one example refusal for each status. The example of a wrong body has a pointer. */
function failureExample(route: Route, [name]: readonly ErrorCode[]): Json {
  if (name === undefined) throw new Error("Cannot document answer: it has no refusal");
  const { wording, body } = route;
  if (name !== "invalid_request" || !body) {
    return failure([{ code: codeOf(name, wording), message: ERRORS[name].meaning }]);
  }
  const pointer = wording?.pointer("/colour") ?? "/colour";
  const { properties = {} } = propertiesOf(body.schema);
  const message = `Cannot accept ${pointer}: ${unknownField(Object.keys(properties))}`;
  return failure([{ code: codeOf(name, wording, pointer), message, source: { pointer } }]);
}

function describe(name: ErrorCode, wording?: RefusalWording): string {
  return `${codeOf(name, wording)}: ${ERRORS[name].meaning}`;
}

const codeOf = (name: ErrorCode, wording?: RefusalWording, pointer = "") =>
  wording?.code(name, pointer) ?? ERRORS[name].code;

function headersOf(route: Route): Json {
  return {
    "X-Request-Id": header("The request's id, as in the logs"),
    ...(route.rendering
      ? {
          "X-Browser-Ms-Used": header("Milliseconds a browser was held", "integer"),
          "X-Queued-Ms": header("Milliseconds the request waited for a browser worker", "integer"),
          "X-Target-Status": header("Status that the page's own site answered", "integer"),
        }
      : {}),
  };
}

function header(description: string, type = "string"): Json {
  return { description, schema: { type } };
}
