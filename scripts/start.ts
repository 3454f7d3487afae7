/** What `npm start` runs once scripts/setup has brought what is needed. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { withoutPasswords } from "../actors/runtime/bus-address.ts";
import type { Config } from "./config.ts";
import { runProgram } from "./program.ts";
import { roles } from "./roles.ts";

process.exit(await runProgram({ environment: process.env, roles, onReady: greet }));

/** Says where everything is, and gives commands to copy. */
function greet(config: Config): void {
  const { dataDir, publicUrl, natsUrl } = config;
  const lines = [
    "",
    `Trunkline runs: ${config.roles.join(", ")}. Ctrl-C stops it.`,
    natsUrl === undefined
      ? `Bus          nats -s "$(cat '${join(dataDir, "nats.url")}')" …`
      : `Bus          ${withoutPasswords(natsUrl)}`,
  ];
  if (config.roles.includes("gateway")) {
    const credentials = join(dataDir, "credentials.json");
    lines.push(`Base URL     ${publicUrl}/v4`);
    // In a cluster the first account may have been made by another gateway.
    if (existsSync(credentials))
      lines.push(`Credentials  ${credentials}`, "", ...firstPdf(credentials));
  }
  console.log(`${lines.join("\n")}\n`);
}

function firstPdf(credentials: string): string[] {
  return [
    "A first PDF:",
    "",
    `  credential() { node -p "require('${credentials}').$1"; }`,
    `  curl -fsS "$(credential base_url)/accounts/$(credential account_id)/browser-rendering/pdf" \\`,
    `    -H "Authorization: Bearer $(credential api_token)" -H 'Content-Type: application/json' \\`,
    `    -d '{"html": "<h1>Hello from Trunkline</h1>"}' -o hello.pdf`,
  ];
}
