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
  }).describe("The app's configuration, from trunkline.jsonc"),
  bundle: z
    .string()
    .min(1)
    .refine((bundle) => bytesOf(bundle) <= APP_BUNDLE_BYTES_MAX, {
      error: `Expected at most ${APP_BUNDLE_BYTES_MAX} bytes in UTF-8`,
    })
    .describe("One ES module that contains everything except trunkline/agents"),
});
export type DeployApp = z.infer<typeof DeployApp>;

export const RollBackApp = z.strictObject({
  version: z
    .int()
    .min(1)
    .optional()
    .describe("Defaults to the latest earlier version that was ready"),
});
export type RollBackApp = z.infer<typeof RollBackApp>;

export const PutAppSecret = z.strictObject({
  value: z
    .string()
    .min(1)
    .refine((value) => bytesOf(value) <= APP_SECRET_BYTES_MAX, {
      error: `Expected at most ${APP_SECRET_BYTES_MAX} bytes in UTF-8`,
    })
    .describe("The secret's value; no response ever contains it"),
});
export type PutAppSecret = z.infer<typeof PutAppSecret>;

const Time = z.iso.datetime();

const WireAppVersion = z.object({
  number: z.int(),
  status: z
    .enum(["checking", "ready", "broken"])
    .describe("Only a `ready` version may serve requests"),
  reason: z.string().optional().describe("The reason why a `broken` version did not start"),
  bundle_bytes: z.int(),
  created_on: Time,
});

export const WireAppSecret = z.object({ name: z.string(), modified_on: Time });

export const WireApp = z.object({
  id: Id,
  name: AppName,
  serving_version: z.int().nullable(),
  url: z.url().describe("The app's address for browsers, on its own origin"),
  machine_url: z.url().describe("The app's address for programs, below the platform's address"),
  config: AppConfig.nullable().describe("Configuration of the version that serves requests"),
  versions: WireAppVersion.array().describe("Newest first"),
  secrets: WireAppSecret.array(),
  created_on: Time,
  modified_on: Time,
});

export const WireAgentUsage = z.object({
  agents: z.int().describe("Number of agents with stored data; destroyed agents do not count"),
  agents_limit: z.int(),
  stored_bytes: z.int().describe("Bytes of the agents' databases and of stored webhook bodies"),
  stored_bytes_limit: z.int().nullable().describe("Null if there is no limit"),
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
    .describe(
      "Returns lines after the line with this id; without it, the newest lines. If that line was dropped, a line of level `warn` with its id comes first, in addition to `limit`",
    ),
  wait_seconds: wholeIn(0, APP_LOG_WAIT_S_MAX)
    .optional()
    .describe(`Seconds to wait for a line if there is none, 0 to ${APP_LOG_WAIT_S_MAX}`),
});

export const WireAppLogLine = z.object({
  id: z.int().describe("The line's id, for `after`"),
  time: Time,
  level: z.enum(["debug", "info", "warn", "error"]),
  text: z.string(),
  version: z.int(),
  agent: z
    .object({ class_name: z.string(), name: z.string() })
    .nullable()
    .describe("The agent that printed the line; null for the app itself"),
});

export const DeletedApp = z.object({ name: AppName });
export const NamedSecret = z.object({ name: BindingName });
