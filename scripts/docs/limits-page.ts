/** Generates the page of the limits that clients may reach, with the values from the code. */
import type { LimitRow } from "./figures.ts";
import { APPS_AND_AGENTS, OAUTH, REPOSITORIES, WEBHOOKS } from "./resource-limits.ts";
import { CRAWLS, RENDERING, REQUESTS_AND_ACCOUNTS } from "./service-limits.ts";

const SECTIONS: Record<string, readonly LimitRow[]> = {
  "Requests and accounts": REQUESTS_AND_ACCOUNTS,
  Rendering: RENDERING,
  Crawls: CRAWLS,
  Repositories: REPOSITORIES,
  OAuth: OAUTH,
  "Apps and agents": APPS_AND_AGENTS,
  Webhooks: WEBHOOKS,
};

export function limitsPage(): string {
  const sections = Object.entries(SECTIONS).map(([title, rows]) => {
    const lines = rows.map(([what, most, past]) => `| ${what} | ${most} | ${past} |`);
    return `## ${title}

| what | how much | past it |
| --- | --- | --- |
${lines.join("\n")}
`;
  });
  return `# Limits

Every limit has a number and a reason, and most have a test at the limit and past it. The reasons stand beside the numbers in the
code. These are the limits that clients meet first. 1 KiB is 1,024 bytes, 1 kB is 1,000.

${sections.join("\n")}`;
}
