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

${GENERATED_CLIENTS}

${sections.join("\n")}`;
}

const GENERATED_CLIENTS = `## Generated clients

Generators write clients in many languages from the OpenAPI document. We tried these generators. Their clients compile. Each call that we
tried returned what the document declares, also the bytes of a PDF.

| generator | use |
| --- | --- |
| openapi-typescript 7.13 with openapi-fetch | Read a PDF with \`parseAs: "blob"\` |
| openapi-generator 7.25, \`go\`, \`python\` | No options needed. Version 7.14 also works for \`go\`. |
| openapi-generator 7.25, \`typescript-axios\` | Read a PDF with \`responseType: "arraybuffer"\` |
| openapi-generator 7.25, \`typescript-fetch\` | Generate with \`--global-property skipFormModel=false\`, because the client imports the type of the upload form |
| openapi-python-client 0.29 | Its configuration needs \`content_type_overrides: { application/pdf: application/octet-stream }\`, and the same for images |

\`\`\`sh
curl -sS http://127.0.0.1:8787/v4/openapi.json -o openapi.json
npx @openapitools/openapi-generator-cli version-manager set 7.25.0
npx @openapitools/openapi-generator-cli generate -i openapi.json -g python -o client
\`\`\``;

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
