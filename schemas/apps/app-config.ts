/**
 * The configuration of an app (`trunkline.jsonc`). For an unknown key, the error suggests the nearest name that
 * exists.
 */
import { z } from "zod";
import { NamespaceName, RepoName } from "../repositories/git-names.ts";
import { AppName, BindingName, ClassName } from "./app-names.ts";
import {
  APP_AGENT_CLASSES_MAX,
  APP_EVENT_RULES_MAX,
  APP_SECRETS_MAX,
  APP_VAR_BYTES_MAX,
  APP_VARS_MAX,
  APP_WEBHOOKS_MAX,
} from "./limits.ts";

/**
 * Any JSON value. A recursive schema would not be more exact, and breaks generators that read the OpenAPI document.
 */
const Var = z.unknown().refine((value) => {
  const text = JSON.stringify(value);
  return text !== undefined && Buffer.byteLength(text) <= APP_VAR_BYTES_MAX;
}, `expected a JSON value of at most ${APP_VAR_BYTES_MAX} bytes`);

/** The place in an event where its entity is found. The entity names the agent. */
export const EntitySource = z.union([
  /** `:entity` of the endpoint's path. */
  z.strictObject({ path: z.literal(true) }),
  /** A JSON pointer into the body (RFC 6901). */
  z.strictObject({
    body: z.string().regex(/^(\/[^/]*)+$/, "expected a JSON pointer such as /repository/full_name"),
  }),
  z.strictObject({ header: z.string().regex(/^[\w-]+$/, "expected the name of a header") }),
]);
export type EntitySource = z.infer<typeof EntitySource>;

/** The place of an event's id or type, if it differs from the provider's usual one. */
export const FieldSource = z.union([
  z.strictObject({ body: z.string().regex(/^(\/[^/]*)+$/, "expected a JSON pointer such as /id") }),
  z.strictObject({ header: z.string().regex(/^[\w-]+$/, "expected the name of a header") }),
]);
export type FieldSource = z.infer<typeof FieldSource>;

/** A signature over the body with a shared secret, for providers that are not listed by name. */
export const HmacScheme = z.strictObject({
  header: z.string().regex(/^[\w-]+$/, "expected the name of a header"),
  algorithm: z.enum(["sha1", "sha256", "sha512"]).default("sha256"),
  encoding: z.enum(["hex", "base64"]).default("hex"),
  /** Text before the signature, such as `sha256=`. */
  prefix: z.string().max(32).default(""),
  /** The header with the time in epoch seconds. With it, the signed text is `<time>.<body>`. */
  timestamp_header: z
    .string()
    .regex(/^[\w-]+$/, "expected the name of a header")
    .optional(),
  tolerance_seconds: z.int().min(1).max(86_400).default(300),
});
export type HmacScheme = z.infer<typeof HmacScheme>;

export const WEBHOOK_PROVIDERS = [
  "github",
  "stripe",
  "slack",
  "shopify",
  "twilio",
  "linear",
  "standard-webhooks",
  "hmac",
] as const;

/** An endpoint that needs no code: its events are verified, stored, answered with 202, and delivered in order. */
export const WebhookEndpoint = z
  .strictObject({
    /** The path below the app's address. `:entity` may stand in place of one segment. */
    path: z
      .string()
      .max(256)
      .regex(/^\/[\w./:-]*$/, "expected a path such as /webhooks/github"),
    provider: z.enum(WEBHOOK_PROVIDERS),
    /** Names of secrets of the app. During a rotation there are several. */
    secret: z.union([BindingName, z.array(BindingName).min(1).max(4)]),
    /** The binding of the agent class that gets the events. */
    agent: BindingName,
    entity: EntitySource,
    event_id: FieldSource.optional(),
    event_type: FieldSource.optional(),
    hmac: HmacScheme.optional(),
  })
  .refine(({ provider, hmac }) => (provider === "hmac") === (hmac !== undefined), {
    path: ["hmac"],
    message: 'expected with provider "hmac", and only there',
  });
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>;

const REPO_EVENT_TYPES = [
  "created",
  "deleted",
  "forked",
  "imported",
  "pushed",
  "cloned",
  "fetched",
  "token.created",
  "token.revoked",
] as const;

/**
 * Sends events of the account's repositories to agents. The events of one repository go to the agent that is named
 * after it.
 */
export const EventRule = z.strictObject({
  source: z.literal("artifacts"),
  types: z.array(z.enum(REPO_EVENT_TYPES)).min(1),
  namespace: NamespaceName.optional(),
  repo: RepoName.optional(),
  agent: BindingName,
});
export type EventRule = z.infer<typeof EventRule>;

export const AppConfig = z.strictObject({
  $schema: z.string().optional(),
  name: AppName,
  /** The module that is bundled. Only the command line uses this field. */
  main: z.string().max(512).optional(),
  compatibility_date: z.iso.date("expected a date such as 2026-11-20"),
  vars: z
    .record(BindingName, Var)
    .refine((vars) => Object.keys(vars).length <= APP_VARS_MAX, `expected at most ${APP_VARS_MAX}`)
    .default({}),
  secrets: z
    .strictObject({ required: z.array(BindingName).max(APP_SECRETS_MAX) })
    .default({ required: [] }),
  agents: z
    .array(z.strictObject({ binding: BindingName, class_name: ClassName }))
    .max(APP_AGENT_CLASSES_MAX)
    .default([]),
  artifacts: z
    .array(z.strictObject({ binding: BindingName, namespace: NamespaceName }))
    .max(16)
    .default([]),
  browser: z.strictObject({ binding: BindingName }).optional(),
  webhooks: z.array(WebhookEndpoint).max(APP_WEBHOOKS_MAX).default([]),
  events: z.array(EventRule).max(APP_EVENT_RULES_MAX).default([]),
  deliveries: z
    .strictObject({
      /** How many days an agent's log keeps deliveries. The field below limits their number. */
      keep_days: z.int().min(1).max(365).default(30),
      keep_count: z.int().min(1).max(100_000).default(10_000),
    })
    .default({ keep_days: 30, keep_count: 10_000 }),
});
export type AppConfig = z.infer<typeof AppConfig>;

/**
 * A configuration that is being deployed. AppConfig omits these checks, because a stored configuration may have been
 * accepted before they existed.
 */
export const NewAppConfig = AppConfig.superRefine(checkNames);

interface Names {
  vars: Record<string, unknown>;
  secrets: { required: string[] };
  agents: { binding: string }[];
  artifacts: { binding: string }[];
  browser?: { binding: string } | undefined;
  webhooks: { agent: string }[];
  events: { agent: string }[];
}

/** Checks that each name in `env` occurs once, and that events go to existing agents. */
function checkNames(config: Names, context: z.RefinementCtx): void {
  const bindings = config.agents.map(({ binding }) => binding);
  for (const list of ["webhooks", "events"] as const) {
    for (const [index, { agent }] of config[list].entries()) {
      if (bindings.includes(agent)) continue;
      const expected =
        bindings.length === 0 ? "a binding of agents" : `one of ${bindings.join(", ")}`;
      const message = `Expected ${expected}, not ${JSON.stringify(agent)}`;
      context.addIssue({ code: "custom", path: [list, index, "agent"], message });
    }
  }
  const seen = new Set([...Object.keys(config.vars), ...config.secrets.required]);
  const named = [
    ...config.agents.map(({ binding }, index) => ({ binding, path: ["agents", index, "binding"] })),
    ...config.artifacts.map(({ binding }, index) => ({
      binding,
      path: ["artifacts", index, "binding"],
    })),
    ...(config.browser ? [{ binding: config.browser.binding, path: ["browser", "binding"] }] : []),
  ];
  for (const { binding, path } of named) {
    if (seen.has(binding)) {
      const message = `Expected a name that env does not have yet, not ${JSON.stringify(binding)}`;
      context.addIssue({ code: "custom", path, message });
    }
    seen.add(binding);
  }
}
