/** Forwards one request in absolute form to its origin, and streams the response back. */

import type { ServerResponse } from "node:http";
import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
} from "node:http";
import { Socket } from "node:net";
import { pipeline } from "node:stream";
import { EGRESS_HEADER_BYTES_MAX } from "../../schemas/limits.ts";
import { systemError } from "./egress-error.ts";
import { endToEndHeaders, hasHeader } from "./http-headers.ts";
import type { MarkedRequest } from "./marked-requests.ts";
import { answerFailure, notWanted } from "./proxy-answers.ts";

export interface HttpExchange {
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  agents: { kept: Agent; single: Agent };
  idleMs: number;
  /** If set, it decides when the request may be sent. */
  marked: MarkedRequest | undefined;
  /** Called whenever bytes moved on the connection to the origin. */
  moved: (socket: Socket) => void;
  /**
   * Called once if no complete response will arrive. If possible, the function then sends an error response to the
   * client.
   */
  failed: (error: unknown) => void;
}

/** Methods that may be sent again (RFC 9110, section 9.2.1) if the origin has closed a kept-alive connection. */
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Starts an exchange and returns immediately. Its progress and its failure are reported only by `moved` and `failed`.
 */
export function exchange(passage: HttpExchange): void {
  new Exchange(passage).start();
}

class Exchange {
  readonly #passage: HttpExchange;
  readonly #hasBody: boolean;
  /**
   * Whether the request may be sent twice. If not, it never uses a kept-alive connection, which its origin may be
   * about to close.
   */
  readonly #repeatable: boolean;
  /**
   * True after the response to the client is closed, or after the exchange has failed or was refused. Later events
   * are ignored.
   */
  #over = false;
  #upstream: ClientRequest | undefined;

  constructor(passage: HttpExchange) {
    const { method = "", headers } = passage.request;
    this.#passage = passage;
    this.#hasBody =
      headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
    this.#repeatable = SAFE_METHODS.has(method) && !this.#hasBody;
  }

  start(): void {
    const { response, agents } = this.#passage;
    this.#startOn(this.#repeatable ? agents.kept : agents.single);
    response.once("close", () => {
      this.#over = true;
      if (!response.writableFinished) this.#upstream?.destroy();
    });
  }

  #startOn(agent: Agent): void {
    const { marked } = this.#passage;
    if (marked === undefined) this.#upstream = this.#send(agent);
    else void this.#startMarked(marked, agent);
  }

  async #startMarked({ admit }: MarkedRequest, agent: Agent): Promise<void> {
    const isAdmitted = await admit();
    if (this.#over) return;
    if (isAdmitted) this.#upstream = this.#send(agent);
    else this.#takeBack();
  }

  /** Ends the exchange without recording a failure of its target. */
  #takeBack(): void {
    this.#over = true;
    answerFailure(this.#passage.response, notWanted());
  }

  #send(agent: Agent): ClientRequest {
    const { request, idleMs, marked, moved } = this.#passage;
    const sent = httpRequest({ ...targetOf(this.#passage), agent });
    sent.maxHeadersCount = 0;
    sent.setTimeout(idleMs, () => {
      this.#fail(systemError("ETIMEDOUT", "nothing moved for too long"));
      sent.destroy();
    });
    if (marked !== undefined) {
      sent.once("socket", () => void this.#leave(sent, marked));
      sent.once("finish", marked.onSent);
    }
    sent.on("information", () => moved(socketOf(sent)));
    this.#awaitAnswer(sent);
    if (this.#hasBody) pipeline(request, sent, () => {});
    else if (marked === undefined) sent.end();
    return sent;
  }

  #awaitAnswer(sent: ClientRequest): void {
    const { moved, agents } = this.#passage;
    let settled = false;
    let readBefore = 0;
    sent.once("socket", ({ bytesRead }) => {
      readBefore = bytesRead;
    });
    sent.once("response", (answer) => {
      settled = true;
      moved(socketOf(sent));
      this.#passBack(answer, socketOf(sent));
    });
    sent.on("error", (error) => {
      if (this.#over || settled) return;
      settled = true;
      const isStale = sent.reusedSocket && socketOf(sent).bytesRead === readBefore;
      // Retries once over a connection of its own, which is never a reused one.
      if (this.#repeatable && isStale && isClosed(error)) this.#startOn(agents.single);
      else this.#fail(error);
    });
    sent.once("close", () => {
      // If the origin switches protocols without being asked, "close" is the only event.
      if (!settled) this.#fail(systemError("ECONNRESET", "closed without an answer"));
    });
  }

  async #leave(sent: ClientRequest, { mayLeave }: MarkedRequest): Promise<void> {
    const isDue = await mayLeave();
    if (this.#over || sent.destroyed) return;
    if (isDue) {
      sent.end();
      return;
    }
    this.#takeBack();
    sent.destroy();
  }

  #passBack(answer: IncomingMessage, socket: Socket): void {
    const { response, moved } = this.#passage;
    const headers = endToEndHeaders(answer.rawHeaders);
    try {
      response.writeHead(answer.statusCode ?? 0, answer.statusMessage ?? "", headers);
    } catch (error) {
      // Node's parser accepts a few bytes in headers that Node refuses to write.
      this.#fail(error);
      answer.destroy();
      return;
    }
    answer.on("data", () => moved(socket));
    answer.once("error", (error) => this.#fail(error));
    pipeline(answer, response, () => moved(socket));
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#passage.failed(error);
  }
}

function targetOf({ request, url }: HttpExchange) {
  const headers = endToEndHeaders(request.rawHeaders, ["host", "expect"]);
  headers.unshift("Host", url.host);
  if (request.headers["transfer-encoding"] !== undefined) {
    headers.push("Transfer-Encoding", "chunked");
  } else if (!hasHeader(headers, "content-length") && !SAFE_METHODS.has(request.method ?? "")) {
    headers.push("Content-Length", "0");
  }
  return {
    host: url.hostname,
    port: url.port === "" ? 80 : Number(url.port),
    method: request.method ?? "GET",
    path: url.pathname + url.search,
    headers,
    maxHeaderSize: EGRESS_HEADER_BYTES_MAX,
    insecureHTTPParser: false,
  };
}

function socketOf(sent: ClientRequest): Socket {
  return sent.socket ?? new Socket();
}

function isClosed(error: Error): boolean {
  return "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}
