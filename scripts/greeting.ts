/** Prints the platform's addresses and some example commands when the start is complete. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { withoutPasswords } from "../actors/runtime/bus/bus-address.ts";
import type { Config } from "./config.ts";

export function greeting(config: Config): string {
  const { dataDir, publicUrl, natsUrl } = config;
  const lines = ["", `Trunkline runs: ${config.roles.join(", ")}. Ctrl-C stops it.`, ""];
  if (config.roles.includes("gateway"))
    lines.push(
      `Console      ${publicUrl}/console`,
      `Base URL     ${publicUrl}/v4`,
      `Docs         ${publicUrl}/docs`,
    );
  // In a cluster, another gateway may have created the first account. Then this file does not exist here.
  const credentials = join(dataDir, "credentials.json");
  const hasCredentials = config.roles.includes("gateway") && existsSync(credentials);
  if (hasCredentials) lines.push(`Credentials  ${credentials}`);
  lines.push(
    natsUrl === undefined
      ? `Bus          nats -s "$(cat '${join(dataDir, "nats.url")}')" …`
      : `Bus          ${withoutPasswords(natsUrl)}`,
    "             (for operators: the nats CLI, https://github.com/nats-io/natscli, shows what happens on it)",
  );
  if (hasCredentials)
    lines.push("", ...firstPdf(credentials), "", ...FIRST_CRAWL, "", ...FIRST_PUSH);
  return `${lines.join("\n")}\n`;
}

function firstPdf(credentials: string): string[] {
  return [
    "A first PDF:",
    "",
    `  credential() { node -p "require('${credentials}').$1"; }`,
    `  api() { what=$1; shift; curl --fail-with-body -sS "$(credential base_url)/accounts/$(credential account_id)/$what" \\`,
    `    -H "Authorization: Bearer $(credential api_token)" -H 'Content-Type: application/json' "$@"; }`,
    `  api browser-rendering/pdf -d '{"html": "<h1>Hello from Trunkline</h1>"}' -o hello.pdf`,
  ];
}

/** The example does not render pages, so that it uses none of the account's browser time. */
const FIRST_CRAWL = [
  "A first crawl, followed to its end, and the pages it has found:",
  "",
  `  job=$(api browser-rendering/crawl -d '{"url": "https://example.com/", "render": false, "formats": ["markdown"]}' \\`,
  `    | node -p 'JSON.parse(require("fs").readFileSync(0)).result')`,
  `  api browser-rendering/crawl/$job/events -N`,
  `  api browser-rendering/crawl/$job`,
];

/** The example passes the token in an environment variable, because all users of a machine can read command lines. */
const FIRST_PUSH = [
  "A first repository, and a push to it from an empty folder:",
  "",
  `  made=$(api artifacts/namespaces/default/repos -d '{"name": "hello"}')`,
  `  made() { echo "$made" | node -p "JSON.parse(require('fs').readFileSync(0)).result.$1"; }`,
  "  git init -q -b main hello && echo Hello > hello/README.md && git -C hello add .",
  `  git -C hello -c user.name=Me -c user.email=me@example.com commit -q -m "First commit"`,
  `  GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader GIT_CONFIG_VALUE_0="Authorization: Bearer $(made token)" \\`,
  `    git -C hello push "$(made remote)" main`,
];
