/** What the gateway takes from the configuration. */
export interface GatewayConfig {
  host: string;
  port: number;
  /** The base URL, with no slash at its end. */
  publicUrl: string;
  /** Folder of credentials.json. */
  dataDir: string;
  /** Seconds for each account and UTC day; 0 is no limit. */
  browserSecondsPerDay: number;
  /** A model for the format json; unset: only those that a request brings. */
  ai?: object | undefined;
  /** Requests of each account in REQUEST_WINDOW_MS; 0 is no limit. */
  requestsPerWindow: number;
  /** Proxies whose X-Forwarded-For is believed, in the words of Express; unset: none. */
  trustProxy?: string | undefined;
  /** Address of an OTLP/HTTP receiver, where the program sends what is traced; unset: nothing is. */
  otlpEndpoint?: string | undefined;
  /** The longest between two lookups of an OAuth client's domain, and how long it is looked for. */
  dnsPollSeconds: number;
  dnsWindowSeconds: number;
  /** Closed: new users only by invitation. Unset: open. */
  signup?: "open" | "closed" | undefined;
  shutdownSeconds: number;
  /** Opens /metrics; unset: the token that the first start writes to credentials.json. */
  metricsToken?: string | undefined;
  /** Set when /metrics has a port of its own, which the gateway then does not serve. */
  metricsPort?: number | undefined;
}
