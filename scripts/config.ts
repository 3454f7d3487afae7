/** Reads every setting from the environment, once, into one checked value. */
import { isIPv4, isIPv6 } from "node:net";
import { resolve } from "node:path";
import ipaddr from "ipaddr.js";
import { z } from "zod";
import { isSecretKey } from "../actors/apps/lib/app-secrets/secret-box.ts";
import {
  AGENT_BYTES_PER_ACCOUNT,
  AGENTS_PER_ACCOUNT,
  AGENTS_PER_ACCOUNT_MAX,
  APP_PORTS_MAX,
  APP_PORTS_PRESET,
} from "../schemas/apps/app-limits.ts";
import type { PortRange } from "../schemas/apps/app-ports.ts";
import type { AgentLimits } from "../schemas/apps/app-usage.ts";
import { REQUESTS_PER_WINDOW, SHUTDOWN_SECONDS } from "../schemas/limits.ts";
import { DNS_POLL_SECONDS, DNS_WINDOW_SECONDS } from "../schemas/oauth/limits.ts";
import {
  FILE_BYTES_MAX,
  FILE_BYTES_SETTING_MAX,
  GIT_BYTES_PER_ACCOUNT,
  GIT_BYTES_SETTING_MIN,
  REPO_BYTES_MAX,
  REPO_BYTES_SETTING_MAX,
} from "../schemas/repositories/git-limits.ts";
import type { GitSizes } from "../schemas/repositories/git-sizes.ts";

export const ROLES = ["gateway", "actors", "browser"] as const;
export type Role = (typeof ROLES)[number];

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface Config {
  readonly host: string;
  readonly port: number;
  /** The base URL, with no slash at its end. */
  readonly publicUrl: string;
  /** An absolute path. */
  readonly dataDir: string;
  /** Unset: an embedded server. */
  readonly natsUrl: string | undefined;
  readonly natsCredsFile: string | undefined;
  readonly replicas: number;
  readonly roles: readonly Role[];
  readonly egress: Readonly<{ allow: readonly string[]; deny: readonly string[] }>;
  /** 0 is no limit. */
  readonly browserSecondsPerDay: number;
  /** Limits of the agents of one account. */
  readonly agentLimits: AgentLimits;
  /** OpenAI-compatible endpoint of the format json; unset: only the models a request brings. */
  readonly ai: Readonly<{ baseUrl: string; key: string | undefined; model: string }> | undefined;
  /** Closed: new users only by invitation. */
  readonly signup: "open" | "closed";
  readonly shutdownSeconds: number;
  /** DNS servers for the verification of domains; empty: the system's. */
  readonly dnsServers: readonly string[];
  /** The longest pause between two lookups of a domain, and how long lookups continue. */
  readonly dnsPollSeconds: number;
  readonly dnsWindowSeconds: number;
  /** Path of a browser; unset: Trunkline finds one. */
  readonly chromium: string | undefined;
  /** Requests of each account in REQUEST_WINDOW_MS; 0 is no limit. */
  readonly requestsPerWindow: number;
  readonly gitSizes: Readonly<GitSizes>;
  /** Proxies whose X-Forwarded-For is trusted, in Express's syntax; unset: none. */
  readonly trustProxy: string | undefined;
  /** Address of an OTLP/HTTP receiver; unset: no traces. */
  readonly otlpEndpoint: string | undefined;
  /** Parent domain of the apps' origins, with a port unless it is the scheme's default. */
  readonly appsDomain: string;
  /** Ports of apps on `localhost`; unset: every app is below `appsDomain` alone. */
  readonly appsPorts: PortRange | undefined;
  /** Keys that seal the secrets of apps, the newest first; empty: the key in the data folder. */
  readonly secretsKeys: readonly string[];
  /** The lowest level that is logged. */
  readonly logLevel: LogLevel;
  /** Opens /metrics; unset: the one in credentials.json. */
  readonly metricsToken: string | undefined;
  /** Port of /metrics alone; unset: /metrics is on `port` with everything else. */
  readonly metricsPort: number | undefined;
}

const PORT_MAX = 65_535;
const SECONDS_MAX = 365 * 86_400;
const SHUTDOWN_SECONDS_MAX = 3_600;
const REQUESTS_MAX = 1_000_000_000;
const BYTES_MAX = 10 ** 14;
/** Settings whose values never appear in an error. */
const SECRET_SETTINGS = new Set(["TRUNKLINE_SECRETS_KEY", "TRUNKLINE_METRICS_TOKEN"]);
/** Express's names for ranges of nearby addresses. */
const PROXY_RANGES = ["loopback", "linklocal", "uniquelocal"];

/** Returns the checked settings. Throws one line for each wrong value, which names the valid ones. */
export function configFromEnvironment(environment: NodeJS.ProcessEnv): Config {
  // Container platforms pass unset variables as empty ones.
  const given = Object.entries(environment).filter(([, value]) => value !== "");
  const parsed = Checked.safeParse(Object.fromEntries(given));
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path, message }) => {
      const name = String(path[0]);
      const found = SECRET_SETTINGS.has(name) ? "another value" : quoted(environment[name]);
      return `${name}: expected ${message}, found ${found}`;
    });
    throw new Error(lines.join("\n"));
  }
  const settings = parsed.data;
  const { TRUNKLINE_HOST: host, TRUNKLINE_PORT: port } = settings;
  const authority = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return Object.freeze({
    host,
    port,
    publicUrl: settings.TRUNKLINE_PUBLIC_URL ?? `http://${authority}`,
    dataDir: resolve(settings.TRUNKLINE_DATA),
    natsUrl: settings.TRUNKLINE_NATS_URL,
    natsCredsFile: settings.TRUNKLINE_NATS_CREDS,
    replicas: settings.TRUNKLINE_REPLICAS,
    roles: Object.freeze(settings.TRUNKLINE_ROLES),
    egress: Object.freeze({
      allow: settings.TRUNKLINE_EGRESS_ALLOW,
      deny: settings.TRUNKLINE_EGRESS_DENY,
    }),
    browserSecondsPerDay: settings.TRUNKLINE_BROWSER_SECONDS_PER_DAY,
    agentLimits: Object.freeze({
      agents: settings.TRUNKLINE_AGENTS_PER_ACCOUNT,
      bytes: settings.TRUNKLINE_AGENT_BYTES_PER_ACCOUNT,
    }),
    ai: aiFrom(settings),
    signup: settings.TRUNKLINE_SIGNUP,
    shutdownSeconds: settings.TRUNKLINE_SHUTDOWN_SECONDS,
    dnsServers: Object.freeze(settings.TRUNKLINE_DNS_SERVERS),
    dnsPollSeconds: settings.TRUNKLINE_DNS_POLL_SECONDS,
    dnsWindowSeconds: settings.TRUNKLINE_DNS_WINDOW_SECONDS,
    chromium: settings.TRUNKLINE_CHROMIUM,
    requestsPerWindow: settings.TRUNKLINE_REQUESTS_PER_5_MINUTES,
    gitSizes: Object.freeze({
      fileBytes: settings.TRUNKLINE_GIT_FILE_BYTES,
      repoBytes: settings.TRUNKLINE_GIT_REPO_BYTES,
      accountBytes: settings.TRUNKLINE_GIT_BYTES_PER_ACCOUNT,
    }),
    trustProxy: settings.TRUNKLINE_TRUST_PROXY,
    otlpEndpoint: settings.OTEL_EXPORTER_OTLP_ENDPOINT,
    appsDomain: settings.TRUNKLINE_APPS_DOMAIN ?? `apps.localhost:${port}`,
    appsPorts: appsPortsFrom(settings),
    logLevel: settings.TRUNKLINE_LOG_LEVEL,
    metricsToken: settings.TRUNKLINE_METRICS_TOKEN,
    metricsPort: settings.TRUNKLINE_METRICS_PORT,
    secretsKeys: Object.freeze(settings.TRUNKLINE_SECRETS_KEY),
  });
}

const PORTS_WANTED = `a range of at most ${APP_PORTS_MAX} ports, such as "8801-8900"`;

const Settings = z.object({
  TRUNKLINE_HOST: z
    .string()
    .regex(/^[\w.:-]+$/, "a host name or an IP address")
    .default("127.0.0.1"),
  TRUNKLINE_PORT: whole(1, PORT_MAX, 8787),
  TRUNKLINE_PUBLIC_URL: httpUrl().optional(),
  TRUNKLINE_DATA: z.string().default("./data"),
  TRUNKLINE_NATS_URL: list(
    (url) => /^(nats|tls|ws|wss):\/\/[^/\s]+$/.test(url),
    "nats:// or tls:// URLs, separated by commas",
  )
    .transform((urls) => urls.join(","))
    .optional(),
  TRUNKLINE_NATS_CREDS: z.string().optional(),
  TRUNKLINE_REPLICAS: oneOf(["1", "3", "5"]).default("1").transform(Number),
  TRUNKLINE_ROLES: list(isRole, `roles of ${ROLES.join(", ")}, separated by commas`)
    .transform((roles) => [...new Set(roles.filter(isRole))])
    .default([...ROLES]),
  TRUNKLINE_EGRESS_ALLOW: ranges(),
  TRUNKLINE_EGRESS_DENY: ranges(),
  TRUNKLINE_BROWSER_SECONDS_PER_DAY: whole(0, SECONDS_MAX, 600),
  TRUNKLINE_AGENTS_PER_ACCOUNT: whole(1, AGENTS_PER_ACCOUNT_MAX, AGENTS_PER_ACCOUNT),
  TRUNKLINE_AGENT_BYTES_PER_ACCOUNT: whole(0, BYTES_MAX, AGENT_BYTES_PER_ACCOUNT),
  TRUNKLINE_AI_BASE_URL: httpUrl().optional(),
  TRUNKLINE_AI_KEY: z.string().optional(),
  TRUNKLINE_AI_MODEL: z.string().optional(),
  TRUNKLINE_SIGNUP: oneOf(["open", "closed"]).default("open"),
  TRUNKLINE_SHUTDOWN_SECONDS: whole(1, SHUTDOWN_SECONDS_MAX, SHUTDOWN_SECONDS),
  TRUNKLINE_DNS_SERVERS: list(
    isDnsServer,
    'IP addresses, with a port where it is not 53, such as "10.0.0.53,[fd00::1]:5353"',
  ).default([]),
  TRUNKLINE_DNS_POLL_SECONDS: whole(1, SECONDS_MAX, DNS_POLL_SECONDS),
  TRUNKLINE_DNS_WINDOW_SECONDS: whole(1, SECONDS_MAX, DNS_WINDOW_SECONDS),
  TRUNKLINE_CHROMIUM: z.string().optional(),
  TRUNKLINE_REQUESTS_PER_5_MINUTES: whole(0, REQUESTS_MAX, REQUESTS_PER_WINDOW),
  TRUNKLINE_GIT_FILE_BYTES: whole(GIT_BYTES_SETTING_MIN, FILE_BYTES_SETTING_MAX, FILE_BYTES_MAX),
  TRUNKLINE_GIT_REPO_BYTES: whole(GIT_BYTES_SETTING_MIN, REPO_BYTES_SETTING_MAX, REPO_BYTES_MAX),
  TRUNKLINE_GIT_BYTES_PER_ACCOUNT: whole(0, BYTES_MAX, GIT_BYTES_PER_ACCOUNT),
  // "true" would let any client choose its address; a number of hops is as unsafe behind several proxies.
  TRUNKLINE_TRUST_PROXY: list(
    isProxy,
    `addresses, CIDR ranges or ${PROXY_RANGES.join(", ")}, separated by commas`,
  )
    .transform((proxies) => proxies.join(","))
    .optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl().optional(),
  TRUNKLINE_APPS_DOMAIN: z
    .string()
    .regex(
      /^[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*(?::\d{1,5})?$/,
      'a domain in lower case, with a port where it is not that of the scheme, such as "apps.example.com"',
    )
    .optional(),
  TRUNKLINE_APPS_PORTS: z
    .string()
    .transform((text) => readPorts(text) ?? text)
    .refine((ports) => typeof ports === "object", PORTS_WANTED)
    .transform((ports) => (typeof ports === "object" ? ports : undefined))
    .optional(),
  TRUNKLINE_LOG_LEVEL: oneOf(LOG_LEVELS).default("info"),
  // Too long to guess; the characters of a bearer token (RFC 6750 section 2.1).
  TRUNKLINE_METRICS_TOKEN: z
    .string()
    .regex(/^[A-Za-z0-9._~+/-]{16,256}=*$/, "16 to 256 letters, digits or -._~+/")
    .optional(),
  TRUNKLINE_METRICS_PORT: integer(1, PORT_MAX).optional(),
  TRUNKLINE_SECRETS_KEY: list(
    isSecretKey,
    "keys of 32 bytes in base64, the newest first, separated by commas",
  ).default([]),
});

/** Settings that need other settings. Alone they would be ignored, or refused late. */
const Checked = Settings.superRefine((settings, context) => {
  const needs = (name: keyof typeof settings, message: string) =>
    context.addIssue({ code: "custom", path: [name], message });
  const { TRUNKLINE_AI_BASE_URL: baseUrl, TRUNKLINE_AI_KEY: key } = settings;
  const { TRUNKLINE_AI_MODEL: model } = settings;
  if (baseUrl === undefined && (key ?? model) !== undefined)
    needs("TRUNKLINE_AI_BASE_URL", "the endpoint's URL beside the other TRUNKLINE_AI_ ones");
  if (model === undefined && (key ?? baseUrl) !== undefined)
    needs("TRUNKLINE_AI_MODEL", "the name of a model beside the other TRUNKLINE_AI_ ones");
  if (settings.TRUNKLINE_METRICS_PORT === settings.TRUNKLINE_PORT)
    needs("TRUNKLINE_METRICS_PORT", "another port than TRUNKLINE_PORT");
  if (settings.TRUNKLINE_APPS_PORTS && !isSingleMachine(settings)) {
    const message =
      "no ports of apps, which need http://127.0.0.1 as TRUNKLINE_PUBLIC_URL, and neither TRUNKLINE_APPS_DOMAIN nor TRUNKLINE_NATS_URL";
    needs("TRUNKLINE_APPS_PORTS", message);
  }
  if (settings.TRUNKLINE_NATS_URL !== undefined) return;
  if (settings.TRUNKLINE_REPLICAS !== 1)
    needs("TRUNKLINE_REPLICAS", '"1" without a cluster, which TRUNKLINE_NATS_URL names');
  if (settings.TRUNKLINE_NATS_CREDS !== undefined)
    needs("TRUNKLINE_NATS_CREDS", "TRUNKLINE_NATS_URL with it, the servers that ask for it");
});

/** The name of each setting that begins with TRUNKLINE_. */
export const SETTING_NAMES: readonly string[] = Object.keys(Settings.shape).filter((name) =>
  name.startsWith("TRUNKLINE_"),
);

/** A base URL without a query. A slash at its end is removed, because paths are appended. */
function httpUrl() {
  const message = "an http:// or https:// URL without a query";
  return z
    .string()
    .refine((url) => /^https?:\/\/[^?#\s]+$/.test(url) && URL.canParse(url), message)
    .transform((url) => url.replace(/\/+$/, ""));
}

function whole(min: number, max: number, preset: number) {
  return integer(min, max).default(preset);
}

function integer(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, `a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `a whole number from ${min} to ${max}`);
}

function oneOf<const V extends string>(values: readonly V[]) {
  return z.enum(values, { error: values.map((value) => `"${value}"`).join(" or ") });
}

function list(isValid: (item: string) => boolean, message: string) {
  return z
    .string()
    .transform((text) => text.split(",").map((item) => item.trim()))
    .refine((items) => items.every(isValid), message);
}

function ranges() {
  return list(
    (range) => ipaddr.isValidCIDR(range),
    'CIDR ranges such as "10.0.0.0/8", separated by commas',
  ).default([]);
}

function aiFrom(settings: z.output<typeof Settings>): Config["ai"] {
  const { TRUNKLINE_AI_BASE_URL: baseUrl, TRUNKLINE_AI_MODEL: model } = settings;
  if (baseUrl === undefined || model === undefined) return undefined;
  return Object.freeze({ baseUrl, key: settings.TRUNKLINE_AI_KEY, model });
}

/** Whether browsers of this machine alone come here, so that apps may have ports of its `localhost`. */
function isSingleMachine(settings: z.output<typeof Settings>): boolean {
  const { TRUNKLINE_HOST: host, TRUNKLINE_PUBLIC_URL: publicUrl } = settings;
  // A gateway at `localhost` would get its own cookies sent to apps: browsers tell hosts apart, and ports not.
  const isLoopback = publicUrl === undefined || /^http:\/\/127\.0\.0\.1(:|\/|$)/.test(publicUrl);
  const isAlone = (settings.TRUNKLINE_APPS_DOMAIN ?? settings.TRUNKLINE_NATS_URL) === undefined;
  return host === "127.0.0.1" && isLoopback && isAlone;
}

/** By default the ports after the gateway's own. */
function appsPortsFrom(settings: z.output<typeof Settings>): PortRange | undefined {
  if (!isSingleMachine(settings)) return undefined;
  const first = settings.TRUNKLINE_PORT + 1;
  if (settings.TRUNKLINE_APPS_PORTS) return settings.TRUNKLINE_APPS_PORTS;
  if (first > PORT_MAX) return undefined;
  return { first, last: Math.min(first + APP_PORTS_PRESET - 1, PORT_MAX) };
}

function readPorts(text: string): PortRange | undefined {
  const [first = 0, last = 0] = /^(\d{1,5})-(\d{1,5})$/.exec(text)?.slice(1).map(Number) ?? [];
  const isRange = first >= 1 && first <= last && last <= PORT_MAX && last - first < APP_PORTS_MAX;
  return isRange ? { first, last } : undefined;
}

function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

/** An address with or without a port; IPv6 addresses with a port need brackets. */
function isDnsServer(text: string): boolean {
  const [, bracketed, plain, port = "53"] =
    /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isAddress = bracketed === undefined ? isIPv4(plain ?? "") : isIPv6(bracketed);
  return isIPv6(text) || (isAddress && Number(port) >= 1 && Number(port) <= PORT_MAX);
}

/** Accepts what Express accepts, but not "1", which Express reads as the address 0.0.0.1. */
function isProxy(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  if (PROXY_RANGES.includes(text)) return true;
  if (text.includes("%") || more.length > 0) return false;
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address);
  return isAddress && (bits === undefined || (ipaddr.isValidCIDR(text) && Number(bits) > 0));
}

/** Removes credentials from a URL, because error messages reach logs. */
function quoted(value: string | undefined): string {
  return value === undefined ? "nothing" : `"${value.replace(/\/\/[^/@\s]*@/, "//…@")}"`;
}
