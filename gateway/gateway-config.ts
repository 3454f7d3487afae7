/** The gateway's part of the configuration. */
import type { PortRange } from "../schemas/apps/app-ports.ts";

export interface GatewayConfig {
  host: string;
  port: number;
  /** The base URL, without a slash at its end. */
  publicUrl: string;
  /** Folder of credentials.json. */
  dataDir: string;
  /** Limits the browser time of each account on one UTC day, in seconds; 0 means no limit. */
  browserSecondsPerDay: number;
  /** The AI model for the format `json`. If it is unset, a request must name a model itself. */
  ai?: object | undefined;
  /** Limits the requests of each account in REQUEST_WINDOW_MS; 0 means no limit. */
  requestsPerWindow: number;
  /** The proxies whose X-Forwarded-For header is trusted, in the syntax of Express; unset: none. */
  trustProxy?: string | undefined;
  /** URL of an OTLP/HTTP receiver for traces; unset: no traces. */
  otlpEndpoint?: string | undefined;
  /**
   * `dnsPollSeconds` is the longest pause between two lookups of an OAuth client's domain that is not verified yet.
   * After `dnsWindowSeconds` these lookups stop.
   */
  dnsPollSeconds: number;
  dnsWindowSeconds: number;
  /** `closed`: a new user needs an invitation. The default is `open`. */
  signup?: "open" | "closed" | undefined;
  /** The ports of apps on `localhost`. If unset, an app is reachable only below its domain. */
  appsPorts?: PortRange | undefined;
  shutdownSeconds: number;
  /** The bearer token for /metrics. If unset, it is the token that the first start wrote to credentials.json. */
  metricsToken?: string | undefined;
  /** The separate port of /metrics. If set, the gateway does not serve /metrics on its own port. */
  metricsPort?: number | undefined;
}
