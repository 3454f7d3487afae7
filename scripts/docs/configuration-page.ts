/**
 * Generates the page of settings from scripts/settings.ts: the default, the valid values and the meaning of each
 * setting. The valid values come from the error about a wrong value.
 */
import type { z } from "zod";
import { Settings } from "../settings.ts";

/** A wrong value for every setting that has a check. Settings with free text accept it. */
const WRONG = "\u0000";

export function configurationPage(): string {
  const rows = Object.entries(Settings.shape).map(([name, schema]) => {
    const { description, unset } = schema.meta() as { description: string; unset?: string };
    return `| \`${name}\` | ${unset ?? presetOf(schema)} | ${validOf(schema)} | ${description} |`;
  });
  return `# Configuration

All settings are environment variables. A wrong value stops the start with one line that names the valid values. A variable that
begins with \`TRUNKLINE_\` but is no setting has no effect; the log then warns and names the nearest setting.

| variable | without it | valid values | meaning |
| --- | --- | --- | --- |
${rows.join("\n")}
`;
}

function presetOf(schema: z.ZodType): string {
  const text = String(schema.parse(undefined));
  return text === "" ? "none" : `\`${text}\``;
}

function validOf(schema: z.ZodType): string {
  const valid = schema.safeParse(WRONG).error?.issues[0]?.message ?? "any text";
  return valid.replaceAll("|", "\\|");
}
