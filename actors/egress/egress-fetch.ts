/**
 * Fetches documents for our own code with the same guard as for browsers. Each redirect opens a new, checked
 * connection.
 */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { pipeline, type Readable, type Transform } from "node:stream";
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
  constants as zlib,
} from "node:zlib";
import {
  EGRESS_CONNECTIONS_MAX,
  EGRESS_HEADER_BYTES_MAX,
  EGRESS_IDLE_MS,
  EGRESS_REDIRECTS_MAX,
} from "../../schemas/limits.ts";
import { CappedBody } from "./capped-body.ts";
import { EgressAgent, EgressTlsAgent } from "./egress-agent.ts";
import { EgressError, systemError, toEgressError } from "./egress-error.ts";
import type { EgressGuard } from "./egress-guard.ts";
import type { LookupOwner } from "./lookup-slots.ts";

const EGRESS_BODY_BYTES_MAX = 50_000_000;

export interface EgressFetchOptions {
  agents: EgressAgents;
  signal: AbortSignal;
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** Maximum bytes of the response body after decoding. A larger body fails with `transfer_too_large`. */
  bytesMax?: number;
  /**
   * With 0, a redirect response is returned unchanged. A redirect response without a Location header is always
   * returned unchanged.
   */
  redirectsMax?: number;
  idleMs?: number;
  /** Counts the lookups of names for this owner; defaults to `agents`. */
  lookupOwner?: LookupOwner | undefined;
  /**
   * Decides whether a GET or HEAD request is sent once more over a new connection, after its kept-alive connection
   * was closed without a byte of response. Without this function the request is repeated immediately. Callers that
   * limit how often they send requests to a site pass it.
   */
  oneMore?: () => Promise<boolean>;
  /**
   * Called when the connection is ready. The request is sent when the promise resolves, unless `signal` is aborted by
   * then.
   */
  onSending?: () => Promise<void>;
  /** Called when a request has been sent, also for each redirect. */
  onSent?: () => void;
}

export interface EgressResponse {
  /** The URL that answered, after redirects. */
  url: string;
  status: number;
  headers: Headers;
  /**
   * The body, decoded (gzip, deflate, br, zstd) and limited in size. Read or destroy it; otherwise its connection
   * stays open.
   */
  body: Readable;
  redirects: number;
}

/** Kept-alive connections that a group of related fetches shares. */
export class EgressAgents {
  readonly http: EgressAgent;
  readonly https: EgressTlsAgent;
  readonly #closing = new AbortController();

  /** `idleMax` limits the idle connections for each of http: and https:. The caller limits the connections in use. */
  constructor(options: { guard: EgressGuard; idleMax?: number; ca?: string }) {
    const { guard, idleMax = EGRESS_CONNECTIONS_MAX, ca } = options;
    const common = { guard, idleMax, keepAlive: true, signal: this.#closing.signal };
    this.http = new EgressAgent(common);
    this.https = new EgressTlsAgent({ ...common, ca });
  }

  /** Closes all connections immediately, idle and active ones. */
  close(): void {
    this.#closing.abort(new Error("The agents are closed"));
    this.http.destroy();
    this.https.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Fetches the URL and follows redirects. Throws an `EgressError`, or the reason of the aborted signal. If the body
 * fails later, its stream emits an error of the same kinds.
 */
export async function egressFetch(
  url: string,
  options: EgressFetchOptions,
): Promise<EgressResponse> {
  const { redirectsMax = EGRESS_REDIRECTS_MAX, bytesMax = EGRESS_BODY_BYTES_MAX } = options;
  let hop: Hop = {
    url: parseHttpUrl(url),
    method: (options.method ?? "GET").toUpperCase(),
    headers: new Headers(options.headers),
    body: options.body,
  };
  for (let redirects = 0; ; redirects += 1) {
    const answer = await send(hop, options);
    const location = locationOf(answer);
    if (location === undefined || redirectsMax === 0) {
      return {
        url: hop.url.href,
        status: answer.statusCode ?? 0,
        headers: headersOf(answer),
        body: decodedBody(answer, hop, { signal: options.signal, bytesMax }),
        redirects,
      };
    }
    answer.destroy();
    if (redirects === redirectsMax) {
      const message = `Cannot fetch from ${hop.url.hostname}: it redirects too often`;
      throw new EgressError(
        "too_many_redirects",
        message,
        `${redirects} redirects, then ${location}`,
      );
    }
    hop = nextHop(hop, answer.statusCode ?? 0, parseHttpUrl(location, hop.url));
  }
}

interface Hop {
  url: URL;
  method: string;
  headers: Headers;
  body: string | Uint8Array | undefined;
}

function parseHttpUrl(address: string, base?: URL): URL {
  const url = URL.parse(address, base);
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new EgressError(
    "address_refused",
    "Cannot fetch: the address is not an absolute http: or https: URL",
    address,
  );
}

async function send(hop: Hop, options: EgressFetchOptions): Promise<IncomingMessage> {
  const { signal } = options;
  for (let resent = false; ; resent = true) {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = requestFor(hop, options);
    // Destroying a request that has no connection yet emits no event, so the promise is rejected here.
    const giveUp = () => reject(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    let answered = false;
    let readBefore = 0;
    sent.once("socket", ({ bytesRead }) => {
      readBefore = bytesRead;
    });
    sent.once("response", (answer) => {
      answered = true;
      resolve(answer);
    });
    sent.on("error", reject);
    let hasLeft = false;
    const leave = () => {
      if (sent.destroyed || signal.aborted) return;
      hasLeft = true;
      sent.end(hop.body);
    };
    if (options.onSent) sent.once("finish", options.onSent);
    // If the request closes without a response, the other side switched protocols without being asked.
    sent.once("close", () => {
      if (!answered) reject(systemError("ECONNRESET", "closed without an answer"));
    });
    const { onSending } = options;
    if (onSending === undefined) leave();
    else {
      sent.once("socket", () => {
        onSending().then(leave, (error) => sent.destroy(error));
      });
    }
    try {
      return await promise;
    } catch (error) {
      signal.throwIfAborted();
      const failure = toEgressError(error, hop.url.hostname);
      // The other side closed a kept-alive connection just before the request. That is no fault of the target.
      const isStale =
        sent.reusedSocket &&
        sent.socket?.bytesRead === readBefore &&
        failure.code === "connection_closed";
      const isIdempotent = hop.method === "GET" || hop.method === "HEAD";
      if (!isStale || !isIdempotent || resent) throw failure;
      if (hasLeft && options.oneMore && !(await options.oneMore())) throw failure;
      // The other side may have closed further kept-alive connections, so all idle connections are closed before the
      // retry.
      closeIdle(options.agents);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }
}

function closeIdle({ http, https }: EgressAgents): void {
  for (const { freeSockets } of [http, https]) {
    for (const socket of Object.values(freeSockets).flat()) socket?.destroy();
  }
}

function requestFor({ url, method, headers, body }: Hop, options: EgressFetchOptions) {
  const { agents, signal, idleMs = EGRESS_IDLE_MS, lookupOwner = agents } = options;
  const secure = url.protocol === "https:";
  const sentHeaders = new Headers(headers);
  if (!sentHeaders.has("accept-encoding"))
    sentHeaders.set("Accept-Encoding", "gzip, deflate, br, zstd");
  if (body !== undefined) sentHeaders.set("Content-Length", String(Buffer.byteLength(body)));
  const requested: RequestOptions & { lookupOwner: LookupOwner } = {
    lookupOwner,
    agent: secure ? agents.https : agents.http,
    method,
    headers: Object.fromEntries(sentHeaders),
    maxHeaderSize: EGRESS_HEADER_BYTES_MAX,
    insecureHTTPParser: false,
    signal,
  };
  const sent = (secure ? httpsRequest : httpRequest)(url, requested);
  sent.setTimeout(idleMs, () =>
    sent.destroy(systemError("ETIMEDOUT", "nothing moved for too long")),
  );
  return sent;
}

export const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

function locationOf(answer: IncomingMessage): string | undefined {
  return REDIRECTS.has(answer.statusCode) ? answer.headers.location : undefined;
}

/** Builds the request for a redirect (WHATWG Fetch, "HTTP-redirect fetch"). */
function nextHop(hop: Hop, status: number, url: URL): Hop {
  const headers = new Headers(hop.headers);
  const becomesGet =
    (status === 303 && hop.method !== "HEAD") || (status <= 302 && hop.method === "POST");
  if (becomesGet) {
    for (const name of [
      "content-type",
      "content-encoding",
      "content-language",
      "content-location",
    ]) {
      headers.delete(name);
    }
  }
  // Headers that identify the caller to one origin never go to another.
  if (url.origin !== hop.url.origin) {
    for (const name of ["authorization", "cookie", "proxy-authorization", "host"])
      headers.delete(name);
  }
  return becomesGet ? { url, method: "GET", headers, body: undefined } : { ...hop, url, headers };
}

function headersOf(answer: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  return headers;
}

function decodedBody(
  answer: IncomingMessage,
  { url: { hostname: host }, method }: Hop,
  { signal, bytesMax }: { signal: AbortSignal; bytesMax: number },
): Readable {
  const decoder = isEmpty(answer, method) ? undefined : decoderFor(answer);
  const ended = () => {
    // Nothing to do: if there is an error, the decoder emits it too.
  };
  return new CappedBody(decoder ? pipeline(answer, decoder, ended) : answer, {
    bytesMax,
    tooLarge(bytes) {
      const message = `Cannot fetch from ${host}: the answer is larger than ${bytesMax} bytes`;
      return new EgressError("transfer_too_large", message, `${bytes} bytes and more`);
    },
    failure: (error) => (signal.aborted ? signal.reason : toEgressError(error, host)),
  });
}

/** Whether the response has no body, even if it has a Content-Encoding header (RFC 9110, section 6.4.1). */
function isEmpty(answer: IncomingMessage, method: string): boolean {
  return (
    method === "HEAD" ||
    answer.statusCode === 204 ||
    answer.statusCode === 304 ||
    answer.headers["content-length"] === "0"
  );
}

function decoderFor(answer: IncomingMessage): Transform | undefined {
  switch (answer.headers["content-encoding"]?.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    case "zstd":
      // Limits memory to a window of 8 MB (RFC 9659), even if the frame requests a larger window.
      return createZstdDecompress({ params: { [zlib.ZSTD_d_windowLogMax]: 23 } });
    default:
      return undefined;
  }
}
