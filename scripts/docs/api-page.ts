/** Generates the page with every route of the REST API from the gateway's declarations. */
import { routeTable } from "../../gateway/app.ts";
import type { Route } from "../../gateway/http/route.ts";
import { GIT_SIZES } from "../../schemas/repositories/git-sizes.ts";

export function apiPage(): string {
  const groups = Map.groupBy(allRoutes(), ({ tag }) => tag);
  const sections = Array.from(groups, ([tag, ofTag]) => {
    const rows = ofTag.map(
      ({ method, path, summary, permissions = [] }) =>
        `| \`${method.toUpperCase()} ${path}\` | ${summary} | ${permissions.map((id) => `\`${id}\``).join(" or ") || "any token"} |`,
    );
    return `## ${tag.name}

${tag.description}.

| request | does | needs |
| --- | --- | --- |
${rows.join("\n")}
`;
  });
  return `# REST API

All paths are below \`/v4\`. A request has \`Authorization: Bearer <token>\`, with an API token or an OAuth access token. A running
platform shows every parameter and answer at \`/docs\`, and serves the OpenAPI document at \`/v4/openapi.json\`.
[Errors](errors.md) lists the refusals.

${sections.join("\n")}`;
}

/** Returns the declarations of all routes. The handlers get no dependencies, because they are never called. */
function allRoutes(): Route[] {
  const nothing = {};
  const repositories = { parts: { sizes: GIT_SIZES } };
  const parts = {
    ...{
      actors: nothing,
      blobs: nothing,
      live: nothing,
      secrets: nothing,
      repositories,
      apps: nothing,
    },
    ...{ devtools: nothing, jobs: nothing },
    config: { publicUrl: "" },
    now: () => 0,
    stopping: new AbortController().signal,
  };
  return routeTable(parts as unknown as Parameters<typeof routeTable>[0]);
}
