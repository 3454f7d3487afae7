/** Makes pages of docs/reference from the code, so that they are never behind it. */
import { routeTable } from "../../gateway/app.ts";
import type { Route } from "../../gateway/http/route.ts";
import { TAG_DESCRIPTIONS } from "../../gateway/platform/route-tags.ts";
import { ERRORS } from "../../schemas/errors.ts";
import { GIT_SIZES } from "../../schemas/repositories/git-sizes.ts";

const NOTE = "<!-- Made by `npm run docs` from the code. Change the code, not this page. -->\n";

/** Returns the generated pages by their path from the root of the repository. */
export function referencePages(): ReadonlyMap<string, string> {
  return new Map([
    ["docs/reference/errors.md", errorsPage()],
    ["docs/reference/api.md", apiPage(allRoutes())],
  ]);
}

function errorsPage(): string {
  const rows = Object.entries(ERRORS)
    .toSorted(([, one], [, other]) => one.code - other.code)
    .map(
      ([name, { code, status, meaning }]) => `| ${code} | \`${name}\` | ${status} | ${meaning} |`,
    );
  return `${NOTE}# Errors

A refused request has this body. \`code\` is stable. \`source.pointer\` is the JSON pointer (RFC 6901) of the field at fault.

\`\`\`json
{
  "success": false,
  "errors": [{ "code": 1001, "message": "Cannot accept /limit: Expected a whole number from 1 to 100000", "source": { "pointer": "/limit" } }],
  "messages": [],
  "result": null
}
\`\`\`

Statuses 429 and 503 have the header \`Retry-After\`. Every answer has \`X-Request-Id\`; the log has the request under it.

| code | name | status | meaning |
| --- | --- | --- | --- |
${rows.join("\n")}
`;
}

function apiPage(routes: readonly Route[]): string {
  const groups = Map.groupBy(routes, ({ tag }) => tag);
  const sections = Array.from(groups, ([tag, ofTag]) => {
    const rows = ofTag.map(
      ({ method, path, summary, permissions = [] }) =>
        `| \`${method.toUpperCase()} ${path}\` | ${summary} | ${permissions.map((id) => `\`${id}\``).join(" or ") || "any token"} |`,
    );
    return `## ${tag}

${TAG_DESCRIPTIONS[tag] ?? tag}.

| request | does | needs |
| --- | --- | --- |
${rows.join("\n")}
`;
  });
  return `${NOTE}# REST API

All paths are below \`/v4\`. A request has \`Authorization: Bearer <token>\`, with an API token or an OAuth access token. A running
platform shows every parameter and answer at \`/docs\`, and serves the OpenAPI document at \`/v4/openapi.json\`.
[Errors](errors.md) lists the refusals.

${sections.join("\n")}`;
}

/** The declarations of every route. Their handlers get no parts: they are never called. */
function allRoutes(): Route[] {
  const nothing = {};
  const repositories = { parts: { sizes: GIT_SIZES } };
  const parts = {
    ...{ actors: nothing, blobs: nothing, live: nothing, repositories, apps: nothing },
    config: { publicUrl: "" },
    now: () => 0,
    stopping: new AbortController().signal,
  };
  return routeTable(parts as unknown as Parameters<typeof routeTable>[0]);
}
