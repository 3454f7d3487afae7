/** Fetches a document for our own code under the same guard as browsers: each redirect is a new, checked connection. */
import { request as httpRequest, type IncomingMessage } from "node:http";
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

const EGRESS_BODY_BYTES_MAX = 50_000_000;

export interface EgressFetchOptions {
  agents: EgressAgents;
  signal: AbortSignal;
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** Bytes of the answer's body after decoding; past them the body fails with `transfer_too_large`. */
  bytesMax?: number;
  /** 0 gives a redirect back as it is, as does an answer without a Location. */
  redirectsMax?: number;
  idleMs?: number;
  /**
   * A GET or HEAD whose kept connection turned out closed, without a byte of an answer, is sent once more, over a new
   * one: when this resolves with true, for who has promised a site a moment for each request, and at once for others.
   */
  oneMore?: () => Promise<boolean>;
  /** Called when a request could leave, which it does when this resolves: not at all where `signal` is aborted then. */
  onSending?: () => Promise<void>;
  /** Called when a request has left, each hop's own. */
  onSent?: () => void;
}

export interface EgressResponse {
  /** The URL that answered, after redirects. */
  url: string;
  status: number;
  headers: Headers;
  /** Decoded (gzip, deflate, br, zstd) and capped. Read it or destroy it, or its connection stays taken. */
  body: Readable;
  redirects: number;
}

/** Connections for fetches that belong together, kept between them. */
export class EgressAgents {
  readonly http: EgressAgent;
  readonly https: EgressTlsAgent;
  readonly #closing = new AbortController();

  /** `idleMax` bounds those kept for each scheme; how many are in use is the affair of who fetches. */
  constructor(options: { guard: EgressGuard; idleMax?: number; ca?: string }) {
    const { guard, idleMax = EGRESS_CONNECTIONS_MAX, ca } = options;
    const common = { guard, idleMax, keepAlive: true, signal: this.#closing.signal };
    this.http = new EgressAgent(common);
    this.https = new EgressTlsAgent({ ...common, ca });
  }

  /** Ends every connection at once. */
  close(): void {
    this.#closing.abort(new Error("The agents are closed"));
    this.http.destroy();
    this.https.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Throws an `EgressError`, or the signal's reason; a body that fails on the way emits the same. */
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
    // A request that has no connection yet says nothing when it is destroyed.
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
    // Without an answer before it, the other side switched protocols unasked.
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
      // A kept connection was closed by the other side just then: that says nothing about the target.
      const isStale =
        sent.reusedSocket &&
        sent.socket?.bytesRead === readBefore &&
        failure.code === "connection_closed";
      const isIdempotent = hop.method === "GET" || hop.method === "HEAD";
      if (!isStale || !isIdempotent || resent) throw failure;
      if (hasLeft && options.oneMore && !(await options.oneMore())) throw failure;
      // Other kept connections may be closed as well.
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
  const { agents, signal, idleMs = EGRESS_IDLE_MS } = options;
  const secure = url.protocol === "https:";
  const sentHeaders = new Headers(headers);
  if (!sentHeaders.has("accept-encoding"))
    sentHeaders.set("Accept-Encoding", "gzip, deflate, br, zstd");
  if (body !== undefined) sentHeaders.set("Content-Length", String(Buffer.byteLength(body)));
  const sent = (secure ? httpsRequest : httpRequest)(url, {
    agent: secure ? agents.https : agents.http,
    method,
    headers: Object.fromEntries(sentHeaders),
    maxHeaderSize: EGRESS_HEADER_BYTES_MAX,
    insecureHTTPParser: false,
    signal,
  });
  sent.setTimeout(idleMs, () =>
    sent.destroy(systemError("ETIMEDOUT", "nothing moved for too long")),
  );
  return sent;
}

export const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

function locationOf(answer: IncomingMessage): string | undefined {
  return REDIRECTS.has(answer.statusCode) ? answer.headers.location : undefined;
}

/** WHATWG Fetch, "HTTP-redirect fetch". */
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
    // The error, if any, is the decoder's as well.
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

/** Such a response has no body, whatever its Content-Encoding (RFC 9110, section 6.4.1). */
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
      // RFC 9659: no more memory than a window of 8 MB takes, whatever the frame asks for.
      return createZstdDecompress({ params: { [zlib.ZSTD_d_windowLogMax]: 23 } });
    default:
      return undefined;
  }
}
