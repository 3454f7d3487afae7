/** The gateway's part of the configuration. */
import type { PortRange } from "../schemas/apps/app-ports.ts";

export interface GatewayConfig {
  host: string;
  port: number;
  /** The base URL, with no slash at its end. */
  publicUrl: string;
  /** Folder of credentials.json. */
  dataDir: string;
  /** Seconds for each account and UTC day; 0 is no limit. */
  browserSecondsPerDay: number;
  /** The model for the format json; unset: requests must bring one. */
  ai?: object | undefined;
  /** Requests of each account in REQUEST_WINDOW_MS; 0 is no limit. */
  requestsPerWindow: number;
  /** Proxies whose X-Forwarded-For is trusted, in Express's syntax; unset: none. */
  trustProxy?: string | undefined;
  /** URL of an OTLP/HTTP receiver for traces; unset: no traces. */
  otlpEndpoint?: string | undefined;
  /** The longest pause between two lookups of an OAuth client's domain, and how long lookups continue. */
  dnsPollSeconds: number;
  dnsWindowSeconds: number;
  /** Closed: new users only by invitation. Unset: open. */
  signup?: "open" | "closed" | undefined;
  /** Ports of apps on `localhost`; unset: every app is below its domain alone. */
  appsPorts?: PortRange | undefined;
  shutdownSeconds: number;
  /** Opens /metrics; unset: the token that the first start writes to credentials.json. */
  metricsToken?: string | undefined;
  /** Set when /metrics has a port of its own, which the gateway then does not serve. */
  metricsPort?: number | undefined;
}
