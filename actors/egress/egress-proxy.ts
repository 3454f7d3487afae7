/**
 * A forward proxy for one browser context. All requests of the context go through the guard here, and their bytes are
 * counted.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  EGRESS_BYTES_MAX,
  EGRESS_CONNECTIONS_MAX,
  EGRESS_HEADER_BYTES_MAX,
  EGRESS_IDLE_MS,
} from "../../schemas/limits.ts";
import { ByteMeter } from "./byte-meter.ts";
import { EgressAgent } from "./egress-agent.ts";
import { EgressError, toEgressError } from "./egress-error.ts";
import { type EgressFailure, EgressFailures, targetOfUrl } from "./egress-failures.ts";
import type { EgressGuard, EgressTarget } from "./egress-guard.ts";
import { exchange } from "./http-exchange.ts";
import type { LookupOwner } from "./lookup-slots.ts";
import { type Mark, type MarkedRequest, MarkedRequests } from "./marked-requests.ts";
import {
  answerFailure,
  basicAuthorization,
  CHALLENGE,
  labelsOf,
  notWanted,
  parseAuthority,
  refuseTunnel,
  statusOf,
  tooLarge,
} from "./proxy-answers.ts";
import { carry } from "./tunnel.ts";
import { type TunnelHold, TunnelHolds } from "./tunnel-holds.ts";

/** A site that exists only behind this proxy: the proxy itself answers its requests. */
export interface LocalSite {
  readonly host: string;
  answer(url: URL, request: IncomingMessage, response: ServerResponse): void;
}

export interface EgressProxyOptions {
  guard: EgressGuard;
  /**
   * Maximum bytes that one task may send and receive together. Past this limit the proxy closes all connections and
   * refuses requests until the next `begin`.
   */
  bytesMax?: number;
  /** Maximum parallel requests and tunnels. The proxy answers further ones with 502. */
  connectionsMax?: number;
  /** Time without a byte after which a connection is closed. */
  idleMs?: number;
}

/**
 * The address to which a browser sends its credentials once (authorize-context.ts). No real host can have this name
 * (RFC 6761).
 */
export const AUTHORIZE_URL = "http://trunkline-egress.invalid/";

export class EgressProxy {
  /** The value for Chromium's `proxyServer`. */
  readonly url: string;
  /**
   * Credentials of the browser, because other processes of this machine could use the port. The proxy answers
   * requests without these credentials with 407.
   */
  readonly credentials: { username: string; password: string };
  /**
   * Gives the credentials to the browser. The proxy calls this function once, before it sends its first challenge for
   * credentials.
   */
  introduce: () => Promise<void> = async () => {};

  readonly #server: Server;
  readonly #guard: EgressGuard;
  readonly #meter: ByteMeter;
  readonly #bytesMax: number;
  readonly #connectionsMax: number;
  readonly #idleMs: number;
  readonly #failures = new EgressFailures();
  readonly #closing = new AbortController();
  readonly #agents: { kept: EgressAgent; single: EgressAgent };
  readonly #authorization: Buffer;
  readonly #marked = new MarkedRequests();
  readonly #tunnelHolds = new TunnelHolds();
  /** The open sockets to the browser and to the targets. */
  readonly #sockets = new Set<Duplex>();
  /** Open requests and tunnels. `#answering` holds the connections of clients that wait for a response. */
  #active = 0;
  readonly #answering = new WeakSet<Socket>();
  #introduced: Promise<void> | undefined;
  #site: LocalSite | undefined;
  #owner: LookupOwner = this;

  /** Listens on a port of 127.0.0.1 that the system chooses. */
  static async open(options: EgressProxyOptions): Promise<EgressProxy> {
    const server = createServer({
      maxHeaderSize: EGRESS_HEADER_BYTES_MAX,
      insecureHTTPParser: false,
      keepAliveTimeout: options.idleMs ?? EGRESS_IDLE_MS,
      noDelay: true,
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new EgressProxy(server, options);
  }

  /** Use `open`. */
  constructor(server: Server, options: EgressProxyOptions) {
    const { guard, bytesMax = EGRESS_BYTES_MAX, connectionsMax = EGRESS_CONNECTIONS_MAX } = options;
    const { port } = server.address() as AddressInfo;
    const signal = this.#closing.signal;
    this.url = `http://127.0.0.1:${port}`;
    this.credentials = { username: "trunkline", password: randomBytes(24).toString("base64url") };
    this.#authorization = Buffer.from(basicAuthorization(this.credentials));
    this.#guard = this.#watched(guard);
    this.#bytesMax = bytesMax;
    this.#meter = new ByteMeter(bytesMax);
    this.#connectionsMax = connectionsMax;
    this.#idleMs = options.idleMs ?? EGRESS_IDLE_MS;
    const common = { guard: this.#guard, signal };
    this.#agents = {
      kept: new EgressAgent({ ...common, keepAlive: true, idleMax: connectionsMax }),
      single: new EgressAgent({ ...common, keepAlive: false, idleMax: 0 }),
    };
    this.#server = server;
    // No limit on the number of headers: their total size is limited, and Node would silently drop headers above a
    // number, which changes the request.
    server.maxHeadersCount = 0;
    server.maxConnections = 2 * connectionsMax;
    server.on("connection", (socket: Socket) => this.#watch(socket));
    server.on("request", (request, response) => this.#onRequest(request, response));
    server.on(
      "connect",
      (request, socket, head) => void this.#onConnect(request, socket as Socket, head),
    );
  }

  /** Bytes that the task has transferred so far, measured on the connections to the targets. */
  get bytes(): { received: number; sent: number } {
    return { received: this.#meter.received, sent: this.#meter.sent };
  }

  /** The failures of this task, the latest last. */
  get failures(): readonly EgressFailure[] {
    return this.#failures.list();
  }

  /**
   * Returns the latest failure for the host and port of an address. It shows whether the proxy refused a document or
   * the host was unreachable.
   */
  failureOf(address: string): EgressFailure | undefined {
    return this.#failures.of(address);
  }

  /** Starts a new task of the same tenant in the same context. It resets the counters and the failures. */
  begin({ bytesMax = this.#bytesMax }: { bytesMax?: number } = {}): void {
    this.#meter.begin(bytesMax);
    this.#failures.clear();
  }

  /**
   * Registers a mark. Requests over http: that carry this mark are sent only when `request` allows it, until the mark
   * is disposed of.
   */
  mark(request: MarkedRequest): Mark {
    return this.#marked.add(request);
  }

  /** Counts the lookups of names for this owner, such as an account; before, they count for the proxy itself. */
  countLookupsFor(owner: LookupOwner): void {
    this.#owner = owner;
  }

  /** Answers requests for the host of the site itself, so that they reach no network. */
  serve(site: LocalSite): void {
    this.#site = site;
  }

  /**
   * Registers `hold` for tunnels to the host and port of the URL, until the returned object is disposed of. `hold`
   * must agree before more bytes of the browser go through such a tunnel.
   */
  holdTunnels(url: URL, hold: TunnelHold): Disposable {
    return this.#tunnelHolds.add(targetOfUrl(url), hold);
  }

  /** Stops listening and closes every connection immediately. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error("The proxy is closed"));
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#cutAll();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    if (this.#answering.has(request.socket)) {
      // The client sent a request before the response to the last one. Browsers do not pipeline, and Node does not
      // report when a client cancels a queued response.
      request.socket.destroy();
      return;
    }
    if (!this.#isAuthorized(request)) {
      this.#answering.add(request.socket);
      response.once("close", () => this.#answering.delete(request.socket));
      // A browser sends the same request again. It needs no second connection unless the request has a body, which
      // the proxy would have to read first.
      const isRepeated = request.method === "GET" || request.method === "HEAD";
      const connection = isRepeated ? { "Content-Length": "0" } : { Connection: "close" };
      void this.#challengeable(request).then(() =>
        response.writeHead(407, { "Proxy-Authenticate": CHALLENGE, ...connection }).end(),
      );
      return;
    }
    if (request.url === AUTHORIZE_URL) {
      response.writeHead(204).end();
      return;
    }
    if (!request.url?.startsWith("http://") || !URL.canParse(request.url)) {
      response.writeHead(400, { Connection: "close" });
      response.end("Cannot forward the request: its target is not an absolute http: URL\n");
      return;
    }
    const marked = this.#marked.of(request);
    if (marked === "unknown") {
      answerFailure(response, notWanted());
      return;
    }
    const url = new URL(request.url);
    if (url.host === this.#site?.host) {
      this.#site.answer(url, request, response);
      return;
    }
    const target = targetOfUrl(url);
    const failed = (error: unknown) => answerFailure(response, this.#record(target, error));
    if (!this.#admit(failed)) return;
    this.#active += 1;
    this.#answering.add(request.socket);
    response.once("close", () => {
      this.#active -= 1;
      this.#answering.delete(request.socket);
    });
    exchange({
      ...{ request, response, url, marked, agents: this.#agents, idleMs: this.#idleMs, failed },
      moved: (socket) => this.#count(socket, target),
    });
  }

  async #onConnect(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const leaving = new AbortController();
    const signal = AbortSignal.any([leaving.signal, this.#closing.signal]);
    const leave = () => leaving.abort(new Error("The client has left"));
    client.on("error", () => {});
    client.once("close", leave);
    // If the client closes its connection before the tunnel exists, the tunnel is not needed any more.
    client.once("end", leave);
    if (!this.#isAuthorized(request)) {
      await this.#challengeable(request);
      refuseTunnel(client, 407, { "Proxy-Authenticate": CHALLENGE });
      return;
    }
    if (head.length > 0) client.unshift(head);
    const target = parseAuthority(request.url ?? "");
    if (target === undefined) return refuseTunnel(client, 400);
    const failed = (error: unknown) => {
      const failure = this.#record(target, error);
      refuseTunnel(client, statusOf(failure), labelsOf(failure));
    };
    if (!this.#admit(failed)) return;
    this.#active += 1;
    client.once("close", () => {
      this.#active -= 1;
    });
    try {
      const upstream = await this.#guard.connect(target, { signal, allowHalfOpen: true });
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      client.off("end", leave);
      carry({
        client,
        upstream,
        idleMs: this.#idleMs,
        moved: (socket) => this.#count(socket, target),
        holds: () => this.#tunnelHolds.of(target),
      });
    } catch (error) {
      if (signal.aborted) client.destroy();
      else failed(error);
    }
  }

  #isAuthorized(request: IncomingMessage): boolean {
    const shown = Buffer.from(request.headers["proxy-authorization"] ?? "");
    return (
      shown.length === this.#authorization.length && timingSafeEqual(shown, this.#authorization)
    );
  }

  /** Resolves when a browser can answer a challenge: after it has received the credentials of the proxy. */
  async #challengeable({ url }: IncomingMessage): Promise<void> {
    if (url === AUTHORIZE_URL) return;
    this.#introduced ??= this.introduce().catch(() => {}); // Then the answer is no.
    await this.#introduced;
  }

  /** Returns whether the task may open one more request or tunnel. If not, passes the error to `failed`. */
  #admit(failed: (error: EgressError) => void): boolean {
    if (this.#meter.exceeded) {
      failed(tooLarge("refused after the cap was passed"));
      return false;
    }
    if (this.#active >= this.#connectionsMax) {
      const message = "Cannot fetch: too many connections of one task are open";
      failed(new EgressError("network_failed", message, `${this.#connectionsMax} are open`));
      return false;
    }
    return true;
  }

  #count(socket: Socket, target: EgressTarget): void {
    const before = this.#meter.exceeded;
    this.#meter.count(socket);
    if (before || !this.#meter.exceeded) return;
    const { received, sent } = this.#meter;
    this.#failures.add(target, tooLarge(`${received} bytes received, ${sent} sent`));
    this.#cutAll();
  }

  #record(target: EgressTarget, error: unknown): EgressError {
    // After the byte limit is exceeded, every failure is reported as `transfer_too_large`.
    const cause = this.#meter.exceeded ? tooLarge("cut after the cap was passed") : error;
    const failure = toEgressError(cause, target.host);
    if (!this.#closing.signal.aborted) this.#failures.add(target, failure);
    return failure;
  }

  /** Wraps the guard so that this proxy tracks each socket and can close it. */
  #watched(guard: EgressGuard): EgressGuard {
    return {
      connect: async (target, options) => {
        const socket = await guard.connect(target, { ...options, owner: this.#owner });
        this.#watch(socket);
        // While the connection was opened, the task may have ended or the client may have left.
        if (!this.#closing.signal.aborted && !options.signal.aborted && !this.#meter.exceeded) {
          return socket;
        }
        socket.destroy();
        throw tooLarge("the cap was passed while connecting");
      },
    };
  }

  #watch(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
