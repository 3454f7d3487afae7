/**
 * All settings: the format of each in the environment, its default, and its meaning for
 * docs/reference/configuration.md.
 */
import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import { z } from "zod";
import { isSecretKey } from "../actors/apps/lib/app-secrets/secret-box.ts";
import type { PortRange } from "../schemas/apps/app-ports.ts";
import {
  AGENT_BYTES_PER_ACCOUNT,
  AGENTS_PER_ACCOUNT,
  AGENTS_PER_ACCOUNT_MAX,
  APP_PORTS_MAX,
} from "../schemas/apps/limits.ts";
import { REQUESTS_PER_WINDOW, SHUTDOWN_SECONDS } from "../schemas/limits.ts";
import { DNS_POLL_SECONDS, DNS_WINDOW_SECONDS } from "../schemas/oauth/limits.ts";
import { BROWSER_IDLE_SECONDS } from "../schemas/rendering/limits.ts";
import {
  FILE_BYTES_MAX,
  FILE_BYTES_SETTING_MAX,
  GIT_BYTES_PER_ACCOUNT,
  GIT_BYTES_SETTING_MIN,
  REPO_BYTES_MAX,
  REPO_BYTES_SETTING_MAX,
} from "../schemas/repositories/limits.ts";
import { BYTES_MAX, integer, whole } from "./setting-numbers.ts";
import { STORE_SETTINGS } from "./store-settings.ts";

export const ROLES = ["gateway", "actors", "browser"] as const;
export type Role = (typeof ROLES)[number];

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const PORT_MAX = 65_535;
const SECONDS_MAX = 365 * 86_400;
const SHUTDOWN_SECONDS_MAX = 3_600;
const LEAVE_SECONDS_MAX = 300;
const REQUESTS_MAX = 1_000_000_000;
/** Express's names for address ranges of local networks. */
const PROXY_RANGES = ["loopback", "linklocal", "uniquelocal"];

const PORTS_WANTED = `a range of at most ${APP_PORTS_MAX} ports, such as "8801-8900"`;

/** The settings by the name of their environment variable. `unset` describes the behaviour without the setting. */
export const Settings = z.object({
  TRUNKLINE_HOST: z
    .string()
    .regex(/^[\w.:-]+$/, "a host name or an IP address")
    .default("127.0.0.1")
    .meta({
      description:
        "Address on which the gateway listens, or a process without one for its health page",
    }),
  TRUNKLINE_PORT: whole(1, PORT_MAX, 8787).meta({ description: "Port of that address" }),
  TRUNKLINE_PUBLIC_URL: httpUrl().optional().meta({
    description: "Base URL in links and in `credentials.json`",
    unset: "http://HOST:PORT",
  }),
  TRUNKLINE_DATA: z
    .string()
    .default("./data")
    .meta({ description: "Folder of the embedded bus's store and of `credentials.json`" }),
  TRUNKLINE_NATS_URL: list(
    (url) => /^(nats|tls|ws|wss):\/\/[^/\s]+$/.test(url),
    "nats:// or tls:// URLs, separated by commas",
  )
    .transform((urls) => urls.join(","))
    .optional()
    .meta({
      description:
        "All servers of an outside cluster (nats-server 2.14 or newer), with `user:password@` if they need it. A process connects to no other",
      unset: "an embedded server",
    }),
  TRUNKLINE_NATS_CREDS: z
    .string()
    .optional()
    .meta({ description: "Path of a NATS credentials file for these servers", unset: "none" }),
  TRUNKLINE_NATS_NKEYS: z.string().optional().meta({
    description:
      "Path of a folder that has the NKey seed of each role (`actors.nk`), as `trunkline admin bus-credentials` makes it, or of one such file",
    unset: "none",
  }),
  TRUNKLINE_NATS_CA: z.string().optional().meta({
    description:
      "Path of a file of certificate authorities in PEM that sign the certificates of these servers. With it, a connection without TLS is refused",
    unset: "the system's",
  }),
  TRUNKLINE_NATS_CERT: z.string().optional().meta({
    description: "Path of this process's certificate in PEM, for servers that ask for one",
    unset: "none",
  }),
  TRUNKLINE_NATS_CERT_KEY: z
    .string()
    .optional()
    .meta({ description: "Path of the private key of that certificate", unset: "none" }),
  TRUNKLINE_REPLICAS: oneOf(["1", "3", "5"])
    .default("1")
    .transform(Number)
    .meta({ description: "Copies of every stream; 3 on a cluster" }),
  ...STORE_SETTINGS,
  TRUNKLINE_ROLES: list(isRole, `roles of ${ROLES.join(", ")}, separated by commas`)
    .transform((roles) => [...new Set(roles.filter(isRole))])
    .default([...ROLES])
    .meta({ description: "Roles of this process" }),
  TRUNKLINE_EGRESS_ALLOW: ranges().meta({
    description:
      "Ranges that pages may reach besides public addresses, such as `10.1.0.0/16,127.0.0.1/32`",
  }),
  TRUNKLINE_EGRESS_DENY: ranges().meta({
    description:
      "Ranges that nothing may reach, even if `TRUNKLINE_EGRESS_ALLOW` opens them. Private ranges and the addresses of the machine's interfaces are closed already. Name the elastic and NAT addresses that lead to your machines, because no process can see those",
  }),
  TRUNKLINE_BROWSER_SECONDS_PER_DAY: whole(0, SECONDS_MAX, 600).meta({
    description: "Browser time of an account per day (UTC), in seconds; 0 is no limit",
  }),
  TRUNKLINE_BROWSER_IDLE_SECONDS: whole(0, SECONDS_MAX, BROWSER_IDLE_SECONDS).meta({
    description:
      "A browser that nothing has used for this long ends. The next page starts another, which takes some 0.3 s; 0 keeps it",
  }),
  TRUNKLINE_CRAWL_BYTES_PER_ACCOUNT: integer(0, BYTES_MAX).optional().meta({
    description:
      "Bytes of the results of an account's crawls, after compression, and at most a quarter of the store of crawled pages. 0 is no limit",
    unset: "a quarter of the store of crawled pages",
  }),
  TRUNKLINE_AGENTS_PER_ACCOUNT: whole(1, AGENTS_PER_ACCOUNT_MAX, AGENTS_PER_ACCOUNT).meta({
    description: "Agents of an account that store something",
  }),
  TRUNKLINE_AGENT_BYTES_PER_ACCOUNT: whole(0, BYTES_MAX, AGENT_BYTES_PER_ACCOUNT).meta({
    description:
      "Bytes that these agents store: databases with their changes, and webhooks in both directions, at least 16 KiB for each of the three; at most a quarter of a stream of agents. 0 is no limit",
  }),
  TRUNKLINE_AI_BASE_URL: httpUrl().optional().meta({
    description:
      "An OpenAI-compatible endpoint for crawls with the format `json`, such as `https://api.openai.com/v1`",
    unset: "none: requests must bring a model",
  }),
  TRUNKLINE_AI_KEY: z
    .string()
    .optional()
    .meta({ description: "Key of that endpoint, if it needs one", unset: "none" }),
  TRUNKLINE_AI_MODEL: z
    .string()
    .optional()
    .meta({ description: "Name of its model", unset: "none" }),
  TRUNKLINE_SIGNUP: oneOf(["open", "closed"])
    .default("open")
    .meta({ description: "`closed` admits new users only by invitation" }),
  TRUNKLINE_LEAVE_SECONDS: whole(0, LEAVE_SECONDS_MAX, 0).meta({
    description:
      "Behind a load balancer: how long a process that stops still serves while /healthz answers 503, before its drain",
  }),
  TRUNKLINE_SHUTDOWN_SECONDS: whole(1, SHUTDOWN_SECONDS_MAX, SHUTDOWN_SECONDS).meta({
    description: "Time limit of a drain",
  }),
  TRUNKLINE_DNS_SERVERS: list(
    isDnsServer,
    'IP addresses, with a port where it is not 53, such as "10.0.0.53,[fd00::1]:5353"',
  )
    .default([])
    .meta({
      description: "Servers for the TXT records of OAuth clients' domains",
      unset: "the system's",
    }),
  TRUNKLINE_DNS_POLL_SECONDS: whole(1, SECONDS_MAX, DNS_POLL_SECONDS).meta({
    description: "Longest pause between two lookups of such a domain",
  }),
  TRUNKLINE_DNS_WINDOW_SECONDS: whole(1, SECONDS_MAX, DNS_WINDOW_SECONDS).meta({
    description: "How long lookups of a domain continue",
  }),
  TRUNKLINE_CHROMIUM: z.string().optional().meta({
    description: "Path of a Chromium or headless shell",
    unset: "the one that Trunkline finds",
  }),
  TRUNKLINE_REQUESTS_PER_5_MINUTES: whole(0, REQUESTS_MAX, REQUESTS_PER_WINDOW).meta({
    description:
      "Requests with tokens of an account, of the code of its apps, of refreshes by its OAuth clients, and of each person in the console; 0 is no limit",
  }),
  TRUNKLINE_GIT_FILE_BYTES: whole(
    GIT_BYTES_SETTING_MIN,
    FILE_BYTES_SETTING_MAX,
    FILE_BYTES_MAX,
  ).meta({ description: "The largest file of a repository" }),
  TRUNKLINE_GIT_REPO_BYTES: whole(
    GIT_BYTES_SETTING_MIN,
    REPO_BYTES_SETTING_MAX,
    REPO_BYTES_MAX,
  ).meta({
    description:
      "The largest repository, packed and with its large files. One large file may take half of that",
  }),
  TRUNKLINE_GIT_BYTES_PER_ACCOUNT: whole(0, BYTES_MAX, GIT_BYTES_PER_ACCOUNT).meta({
    description:
      "Bytes of all repositories of an account, and at most a quarter of a stream of packs. Forks share packs, which count once; 0 is no limit",
  }),
  TRUNKLINE_GIT_CA: z.string().optional().meta({
    description:
      "Path of a file of certificate authorities in PEM that imports of repositories trust besides the system's",
    unset: "none",
  }),
  // Two values are refused. "true" would let any client choose its address. A number of hops is equally unsafe behind
  // several proxies.
  TRUNKLINE_TRUST_PROXY: list(
    isProxy,
    `addresses, CIDR ranges or ${PROXY_RANGES.join(", ")}, separated by commas`,
  )
    .transform((proxies) => proxies.join(","))
    .optional()
    .meta({ description: "Proxies whose `X-Forwarded-For` is trusted", unset: "none" }),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl().optional().meta({
    description: "An OTLP/HTTP receiver. Traces follow a request over the bus",
    unset: "no traces",
  }),
  TRUNKLINE_APPS_DOMAIN: z
    .string()
    .regex(
      /^[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*(?::\d{1,5})?$/,
      'a domain in lower case, with a port where it is not that of the scheme, such as "apps.example.com"',
    )
    .optional()
    .meta({
      description:
        "Parent domain of the apps: each has the origin `<app>.<account>.<this domain>`. Without it, apps of a single machine have ports, see `TRUNKLINE_APPS_PORTS`. Use a separate domain, with a wildcard record and a certificate for two labels",
      unset: "apps.localhost:PORT",
    }),
  TRUNKLINE_APPS_PORTS: z
    .string()
    .transform((text) => readPorts(text) ?? text)
    .refine((ports) => typeof ports === "object", PORTS_WANTED)
    .transform((ports) => (typeof ports === "object" ? ports : undefined))
    .optional()
    .meta({
      description:
        "On a single machine: ports of `localhost` for apps, one each. They need `http://127.0.0.1` as public URL, and neither `TRUNKLINE_APPS_DOMAIN` nor `TRUNKLINE_NATS_URL`",
      unset: "the 100 ports after `TRUNKLINE_PORT`",
    }),
  TRUNKLINE_LOG_LEVEL: oneOf(LOG_LEVELS).default("info").meta({
    description:
      "The lowest level that is logged. The log goes to standard error: readable lines on a terminal, JSON elsewhere",
  }),
  // The token must be too long to guess, and may contain only the characters of a bearer token (RFC 6750 section
  // 2.1).
  TRUNKLINE_METRICS_TOKEN: z
    .string()
    .regex(/^[A-Za-z0-9._~+/-]{16,256}=*$/, "16 to 256 letters, digits or -._~+/")
    .optional()
    .meta({
      description:
        "Bearer token of `/metrics`; the same in every process of a cluster. A process without a token does not show its metrics",
      unset: "`metrics_token` of `credentials.json`, made at the first start",
    }),
  TRUNKLINE_METRICS_PORT: integer(1, PORT_MAX).optional().meta({
    description:
      "A port for `/metrics` alone, which a load balancer in front of the other port cannot expose",
    unset: "`/metrics` is on `TRUNKLINE_PORT`",
  }),
  TRUNKLINE_SECRETS_KEY: list(isSecretKey, "keys of 32 bytes in base64, separated by commas")
    .default([])
    .meta({
      description:
        "Keys that seal the secrets of apps and the requests of rendering jobs and crawls, for the roles `gateway` and `actors`; the same in every such process of a cluster. The first seals, all open. To change the key, follow [the steps](../operate/security.md#rotate-the-key-of-app-secrets). Without the key, every secret must be set again",
      unset: "`secrets.key` in the data folder, made at the first start",
    }),
});

/** The names of all settings that begin with TRUNKLINE_. */
export const SETTING_NAMES: readonly string[] = Object.keys(Settings.shape).filter((name) =>
  name.startsWith("TRUNKLINE_"),
);

/** Parses a base URL without a query. Removes a slash at its end, because paths are appended to it. */
function httpUrl() {
  const message = "an http:// or https:// URL without a query";
  return z
    .string()
    .refine((url) => /^https?:\/\/[^?#\s]+$/.test(url) && URL.canParse(url), message)
    .transform((url) => url.replace(/\/+$/, ""));
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

function readPorts(text: string): PortRange | undefined {
  const [first = 0, last = 0] = /^(\d{1,5})-(\d{1,5})$/.exec(text)?.slice(1).map(Number) ?? [];
  const isRange = first >= 1 && first <= last && last <= PORT_MAX && last - first < APP_PORTS_MAX;
  return isRange ? { first, last } : undefined;
}

function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

/** Accepts an address with or without a port. An IPv6 address with a port needs brackets. */
function isDnsServer(text: string): boolean {
  const [, bracketed, plain, port = "53"] =
    /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isAddress = bracketed === undefined ? isIPv4(plain ?? "") : isIPv6(bracketed);
  return isIPv6(text) || (isAddress && Number(port) >= 1 && Number(port) <= PORT_MAX);
}

/** Accepts the values that Express accepts, except "1", which Express reads as the address 0.0.0.1. */
function isProxy(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  if (PROXY_RANGES.includes(text)) return true;
  if (text.includes("%") || more.length > 0) return false;
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address);
  return isAddress && (bits === undefined || (ipaddr.isValidCIDR(text) && Number(bits) > 0));
}
