/** Reads the alert rules for Prometheus from the repository. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";

const SECONDS = { s: 1, m: 60, h: 3_600 };

const Rule = z.strictObject({
  alert: z.string().regex(/^Trunkline[A-Za-z]+$/),
  expr: z.string(),
  for: z
    .string()
    .regex(/^\d+[smh]$/)
    .optional(),
  labels: z.strictObject({ severity: z.enum(["page", "ticket"]) }),
  annotations: z.strictObject({
    summary: z.string(),
    runbook: z.string().regex(/^docs\/operate\/runbook\.md#[a-z0-9-]+$/),
  }),
});
const File = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(Rule) })),
});

export function alertRules() {
  const text = readFileSync(join(import.meta.dirname, "alerts.yaml"), "utf8");
  return File.parse(parse(text)).groups.flatMap((group) => group.rules);
}

/** Returns the time in seconds for which a rule's condition must be true before the alert fires. */
export function forSeconds({ for: time = "0s" }: { for?: string | undefined }): number {
  const unit = time.slice(-1) as keyof typeof SECONDS;
  return Number(time.slice(0, -1)) * SECONDS[unit];
}
