/** Generates the page with every error of the REST API from schemas/errors.ts. */
import { ERRORS } from "../../schemas/errors.ts";

export function errorsPage(): string {
  const rows = Object.entries(ERRORS)
    .toSorted(([, one], [, other]) => one.code - other.code)
    .map(
      ([name, { code, status, meaning }]) => `| ${code} | \`${name}\` | ${status} | ${meaning} |`,
    );
  return `# Errors

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
