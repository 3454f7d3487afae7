/** The documents that are generated from the code, so that they always match it. */
import { apiPage } from "./api-page.ts";
import { cliPage } from "./cli-page.ts";
import { configurationPage } from "./configuration-page.ts";
import { errorsPage } from "./errors-page.ts";
import { limitsPage } from "./limits-page.ts";
import { metricsPage } from "./metrics-page.ts";
import { storageSchema } from "./stored-kinds.ts";

/** Returns the text of each generated page by its path in the repository. */
export function madeDocuments(): ReadonlyMap<string, string> {
  const pages = {
    api: apiPage(),
    cli: cliPage(),
    configuration: configurationPage(),
    errors: errorsPage(),
    limits: limitsPage(),
    metrics: metricsPage(),
  };
  return new Map([
    ...Object.entries(pages).map(
      ([name, text]) => [`docs/reference/${name}.md`, `${NOTE}${text}`] as const,
    ),
    ["deploy/storage-schema.md", storageSchema()] as const,
  ]);
}

const NOTE = "<!-- Made by `npm run docs` from the code. Change the code, not this page. -->\n";
