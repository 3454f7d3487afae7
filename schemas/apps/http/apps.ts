/** Wire shapes of deployed apps. */
import { z } from "zod";
import { Id } from "../../values.ts";
import { AppConfig, NewAppConfig } from "../app-config.ts";
import { AppName, BindingName } from "../app-names.ts";
import {
  APP_BUNDLE_BYTES_MAX,
  APP_CONFIG_BYTES_MAX,
  APP_LOG_LINES_SHOWN_MAX,
  APP_LOG_WAIT_S_MAX,
  APP_SECRET_BYTES_MAX,
} from "../limits.ts";

export const AppPath = z.strictObject({ account_id: Id, app: AppName });
export const AppSecretPath = AppPath.extend({ name: BindingName });

const bytesOf = (text: string) => Buffer.byteLength(text);

export const DeployApp = z.strictObject({
  config: NewAppConfig.refine((config) => bytesOf(JSON.stringify(config)) <= APP_CONFIG_BYTES_MAX, {
    error: `Expected at most ${APP_CONFIG_BYTES_MAX} bytes as JSON`,
  }).describe("What trunkline.jsonc says"),
  bundle: z
    .string()
    .min(1)
    .refine((bundle) => bytesOf(bundle) <= APP_BUNDLE_BYTES_MAX, {
      error: `Expected at most ${APP_BUNDLE_BYTES_MAX} bytes in UTF-8`,
    })
    .describe("One ES module with everything but trunkline/agents in it"),
});
export type DeployApp = z.infer<typeof DeployApp>;

export const RollBackApp = z.strictObject({
  version: z.int().min(1).optional().describe("Without it, the one before that was ready"),
});
export type RollBackApp = z.infer<typeof RollBackApp>;

export const PutAppSecret = z.strictObject({
  value: z
    .string()
    .min(1)
    .refine((value) => bytesOf(value) <= APP_SECRET_BYTES_MAX, {
      error: `Expected at most ${APP_SECRET_BYTES_MAX} bytes in UTF-8`,
    })
    .describe("Never read back"),
});
export type PutAppSecret = z.infer<typeof PutAppSecret>;

const Time = z.iso.datetime();

const WireAppVersion = z.object({
  number: z.int(),
  status: z.enum(["checking", "ready", "broken"]).describe("Only a ready one may serve"),
  reason: z.string().optional().describe("Why a broken one did not start"),
  bundle_bytes: z.int(),
  created_on: Time,
});

export const WireAppSecret = z.object({ name: z.string(), modified_on: Time });

export const WireApp = z.object({
  id: Id,
  name: AppName,
  serving_version: z.int().nullable(),
  url: z.url().describe("For people: an origin of its own"),
  machine_url: z.url().describe("For machines: below our own address"),
  config: AppConfig.nullable().describe("Of the version that serves"),
  versions: WireAppVersion.array().describe("The newest first"),
  secrets: WireAppSecret.array(),
  created_on: Time,
  modified_on: Time,
});

export const WireAgentUsage = z.object({
  agents: z.int().describe("That keep something: one that was destroyed does not"),
  agents_limit: z.int(),
  stored_bytes: z
    .int()
    .describe("Databases with the changes since their last image, and bodies of webhooks"),
  stored_bytes_limit: z.int().nullable().describe("Null is no limit"),
  apps: z.array(z.object({ name: AppName, agents: z.int(), stored_bytes: z.int() })),
});

export const WireAppEntry = z.object({
  name: AppName,
  serving_version: z.int().nullable(),
  url: z.url(),
  machine_url: z.url(),
  created_on: Time,
  modified_on: Time,
});

const wholeIn = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max)
    .meta({ type: "integer", minimum: min, maximum: max });

export const AppLogsQuery = z.strictObject({
  limit: wholeIn(1, APP_LOG_LINES_SHOWN_MAX)
    .optional()
    .describe(`Maximum number of lines, 1 to ${APP_LOG_LINES_SHOWN_MAX}; default 100`),
  after: wholeIn(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe("Lines behind the one with this id; without it the newest"),
  wait_seconds: wholeIn(0, APP_LOG_WAIT_S_MAX)
    .optional()
    .describe(`Where there is none, wait so long for one, 0 to ${APP_LOG_WAIT_S_MAX}`),
});

export const WireAppLogLine = z.object({
  id: z.int().describe("For `after`"),
  time: Time,
  level: z.enum(["debug", "info", "warn", "error"]),
  text: z.string(),
  version: z.int(),
  agent: z
    .object({ class_name: z.string(), name: z.string() })
    .nullable()
    .describe("Which one printed it; null is the app itself"),
});

export const DeletedApp = z.object({ name: AppName });
export const NamedSecret = z.object({ name: BindingName });
