/** Reads and checks all settings from the environment, and returns them as one frozen value. */
import { resolve } from "node:path";
import type { z } from "zod";
import type { BusTls } from "../actors/runtime/bus/bus-tls.ts";
import type { PortRange } from "../schemas/apps/app-ports.ts";
import type { AgentLimits } from "../schemas/apps/app-usage.ts";
import { APP_PORTS_PRESET } from "../schemas/apps/limits.ts";
import { LAYOUT_SETTINGS, mapLayout, type WantedLayout } from "../schemas/data-layout.ts";
import type { GitSizes } from "../schemas/repositories/git-sizes.ts";
import { SIZE_SETTINGS, SIZED_STORES, type WantedSizes } from "../schemas/store-sizes.ts";
import { type LogLevel, PORT_MAX, type Role, Settings } from "./settings.ts";

export interface Config {
  readonly host: string;
  readonly port: number;
  /** The base URL, with no slash at its end. */
  readonly publicUrl: string;
  /** An absolute path. */
  readonly dataDir: string;
  /** Addresses of the outside servers. If unset, an embedded server runs. */
  readonly natsUrl: string | undefined;
  readonly natsCredsFile: string | undefined;
  /** Path of the seed of this process's bus user, or of a folder with the seeds of all its roles. */
  readonly natsNkeys: string | undefined;
  /** Files for TLS to the outside servers. If unset, TLS is used only if a server requires it. */
  readonly natsTls: Readonly<BusTls> | undefined;
  readonly replicas: number;
  /** The layout of the data that the settings ask for, if any. */
  readonly layout: Readonly<WantedLayout>;
  /** Bytes that all streams may have together. If unset, a share of the embedded server's disk. */
  readonly storeBytes: number | undefined;
  /** The sizes of the stores that the settings ask for. */
  readonly storeSizes: Readonly<WantedSizes>;
  readonly roles: readonly Role[];
  readonly egress: Readonly<{ allow: readonly string[]; deny: readonly string[] }>;
  /** Maximum browser time of an account per day. 0 means no limit. */
  readonly browserSecondsPerDay: number;
  /** A browser that no task has used for this long is closed. With 0, it stays open. */
  readonly browserIdleSeconds: number;
  /** Bytes that an account's crawls may store; 0 means no limit. If unset, a share of the stream. */
  readonly crawlBytesPerAccount: number | undefined;
  /** Limits of the agents of one account. */
  readonly agentLimits: AgentLimits;
  /**
   * An OpenAI-compatible endpoint for the format `json`. If unset, only requests that name their own model can use
   * the format.
   */
  readonly ai: Readonly<{ baseUrl: string; key: string | undefined; model: string }> | undefined;
  /** `closed`: new users need an invitation. */
  readonly signup: "open" | "closed";
  /** How long a process continues to serve after its health check begins to fail. Then it drains. */
  readonly leaveSeconds: number;
  readonly shutdownSeconds: number;
  /** DNS servers for the verification of domains. If empty, the system's servers are used. */
  readonly dnsServers: readonly string[];
  /**
   * `dnsPollSeconds` is the longest pause between two lookups of a domain. `dnsWindowSeconds` is how long lookups
   * continue.
   */
  readonly dnsPollSeconds: number;
  readonly dnsWindowSeconds: number;
  /** Path of the browser. If unset, Trunkline searches for one. */
  readonly chromium: string | undefined;
  /** Maximum number of requests of an account in REQUEST_WINDOW_MS. 0 means no limit. */
  readonly requestsPerWindow: number;
  readonly gitSizes: Readonly<GitSizes>;
  /** Path of a file with certificate authorities that imports trust in addition to the system's. If unset, none. */
  readonly gitCa: string | undefined;
  /** Proxies whose X-Forwarded-For header is trusted, in Express's syntax. If unset, none is trusted. */
  readonly trustProxy: string | undefined;
  /** Address of an OTLP/HTTP receiver. If unset, no traces are sent. */
  readonly otlpEndpoint: string | undefined;
  /** Parent domain of the apps' origins. Contains the port unless it is the default port of the scheme. */
  readonly appsDomain: string;
  /** Ports for apps on `localhost`. If unset, every app is only reachable below `appsDomain`. */
  readonly appsPorts: PortRange | undefined;
  /** Keys that encrypt the secrets of apps, the newest first. If empty, the key in the data folder is used. */
  readonly secretsKeys: readonly string[];
  /** The lowest level that is logged. */
  readonly logLevel: LogLevel;
  /** The token that gives access to /metrics. If unset, the token in credentials.json. */
  readonly metricsToken: string | undefined;
  /** Separate port for /metrics. If unset, /metrics is on `port`, together with everything else. */
  readonly metricsPort: number | undefined;
}

/** Settings whose values never appear in an error message. */
const SECRET_SETTINGS = new Set(["TRUNKLINE_SECRETS_KEY", "TRUNKLINE_METRICS_TOKEN"]);
/**
 * Returns the checked settings. Throws an error with one line for each wrong value; the line says which values are
 * valid.
 */
export function configFromEnvironment(environment: NodeJS.ProcessEnv): Config {
  // Removes empty values, because container platforms pass unset variables as empty ones.
  const values = Object.entries(environment).filter(([, value]) => value !== "");
  const parsed = Checked.safeParse(Object.fromEntries(values));
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
    natsNkeys: settings.TRUNKLINE_NATS_NKEYS,
    natsTls: tlsFrom(settings),
    replicas: settings.TRUNKLINE_REPLICAS,
    layout: Object.freeze(mapLayout((part) => settings[LAYOUT_SETTINGS[part]])),
    storeBytes: settings.TRUNKLINE_STORE_BYTES,
    storeSizes: Object.freeze(
      Object.fromEntries(SIZED_STORES.map((store) => [store, settings[SIZE_SETTINGS[store]]])),
    ),
    roles: Object.freeze(settings.TRUNKLINE_ROLES),
    egress: Object.freeze({
      allow: settings.TRUNKLINE_EGRESS_ALLOW,
      deny: settings.TRUNKLINE_EGRESS_DENY,
    }),
    browserSecondsPerDay: settings.TRUNKLINE_BROWSER_SECONDS_PER_DAY,
    browserIdleSeconds: settings.TRUNKLINE_BROWSER_IDLE_SECONDS,
    crawlBytesPerAccount: settings.TRUNKLINE_CRAWL_BYTES_PER_ACCOUNT,
    agentLimits: Object.freeze({
      agents: settings.TRUNKLINE_AGENTS_PER_ACCOUNT,
      bytes: settings.TRUNKLINE_AGENT_BYTES_PER_ACCOUNT,
    }),
    ai: aiFrom(settings),
    signup: settings.TRUNKLINE_SIGNUP,
    leaveSeconds: settings.TRUNKLINE_LEAVE_SECONDS,
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
    gitCa: settings.TRUNKLINE_GIT_CA,
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

/** Checks settings that need other settings. Without the check they would be ignored, or refused only later. */
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
  const { TRUNKLINE_NATS_CERT: cert, TRUNKLINE_NATS_CERT_KEY: certKey } = settings;
  if (cert === undefined && certKey !== undefined)
    needs("TRUNKLINE_NATS_CERT", "the certificate beside TRUNKLINE_NATS_CERT_KEY");
  if (cert !== undefined && certKey === undefined)
    needs("TRUNKLINE_NATS_CERT_KEY", "the private key of TRUNKLINE_NATS_CERT");
  if (settings.TRUNKLINE_NATS_NKEYS !== undefined && settings.TRUNKLINE_NATS_CREDS !== undefined)
    needs("TRUNKLINE_NATS_NKEYS", "nothing beside TRUNKLINE_NATS_CREDS, which names a user too");
  if (settings.TRUNKLINE_NATS_URL !== undefined) return;
  for (const name of BUS_FILES) {
    if (settings[name] !== undefined)
      needs(name, "TRUNKLINE_NATS_URL with it, the servers it is for");
  }
  if (settings.TRUNKLINE_REPLICAS !== 1)
    needs("TRUNKLINE_REPLICAS", '"1" without a cluster, which TRUNKLINE_NATS_URL names');
  if (settings.TRUNKLINE_NATS_CREDS !== undefined)
    needs("TRUNKLINE_NATS_CREDS", "TRUNKLINE_NATS_URL with it, the servers that ask for it");
});

/** Settings of files that only outside servers need. */
const BUS_FILES = [
  "TRUNKLINE_NATS_NKEYS",
  "TRUNKLINE_NATS_CA",
  "TRUNKLINE_NATS_CERT",
  "TRUNKLINE_NATS_CERT_KEY",
] as const;

function tlsFrom(settings: z.output<typeof Settings>): Config["natsTls"] {
  const { TRUNKLINE_NATS_CA: caFile, TRUNKLINE_NATS_CERT: certFile } = settings;
  const { TRUNKLINE_NATS_CERT_KEY: keyFile } = settings;
  if (caFile === undefined && certFile === undefined) return undefined;
  return Object.freeze({
    ...(caFile !== undefined && { caFile }),
    ...(certFile !== undefined && { certFile }),
    ...(keyFile !== undefined && { keyFile }),
  });
}

function aiFrom(settings: z.output<typeof Settings>): Config["ai"] {
  const { TRUNKLINE_AI_BASE_URL: baseUrl, TRUNKLINE_AI_MODEL: model } = settings;
  if (baseUrl === undefined || model === undefined) return undefined;
  return Object.freeze({ baseUrl, key: settings.TRUNKLINE_AI_KEY, model });
}

/**
 * Returns true if only browsers of this machine use the platform. Then apps may have their own ports on `localhost`.
 */
function isSingleMachine(settings: z.output<typeof Settings>): boolean {
  const { TRUNKLINE_HOST: host, TRUNKLINE_PUBLIC_URL: publicUrl } = settings;
  // Browsers send the cookies of a host to all of its ports. So a gateway at `localhost` would send its cookies to
  // apps.
  const isLoopback = publicUrl === undefined || /^http:\/\/127\.0\.0\.1(:|\/|$)/.test(publicUrl);
  const isAlone = (settings.TRUNKLINE_APPS_DOMAIN ?? settings.TRUNKLINE_NATS_URL) === undefined;
  return host === "127.0.0.1" && isLoopback && isAlone;
}

/** The default ports are those directly after the gateway's port. */
function appsPortsFrom(settings: z.output<typeof Settings>): PortRange | undefined {
  if (!isSingleMachine(settings)) return undefined;
  const first = settings.TRUNKLINE_PORT + 1;
  if (settings.TRUNKLINE_APPS_PORTS) return settings.TRUNKLINE_APPS_PORTS;
  if (first > PORT_MAX) return undefined;
  return { first, last: Math.min(first + APP_PORTS_PRESET - 1, PORT_MAX) };
}

/** Removes credentials from a URL, because error messages reach logs. */
function quoted(value: string | undefined): string {
  return value === undefined ? "nothing" : `"${value.replace(/\/\/[^/@\s]*@/, "//…@")}"`;
}
