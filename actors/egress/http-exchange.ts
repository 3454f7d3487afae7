/** Passes one request in absolute form on to its origin, and the answer back, both streamed. */

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
  /** Decides when the request may leave. */
  marked: MarkedRequest | undefined;
  /** Told whenever bytes moved on the connection to the origin. */
  moved: (socket: Socket) => void;
  /** Told once when there will be no (whole) answer; answers in its place if that is still possible. */
  failed: (error: unknown) => void;
}

/** Methods a request may be sent again for (RFC 9110, section 9.2.1), when a kept connection turns out closed. */
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Begins the exchange; its end shows on the response. */
export function exchange(passage: HttpExchange): void {
  new Exchange(passage).start();
}

class Exchange {
  readonly #passage: HttpExchange;
  readonly #hasBody: boolean;
  /** What cannot be sent twice never travels on a connection that its origin may be about to close. */
  readonly #isRepeatable: boolean;
  /** The client has left, or has been told how it ended: what comes later is of no interest. */
  #isOver = false;
  #upstream: ClientRequest | undefined;

  constructor(passage: HttpExchange) {
    const { method, headers } = passage.request;
    this.#passage = passage;
    this.#hasBody =
      headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
    this.#isRepeatable = SAFE_METHODS.has(method ?? "") && !this.#hasBody;
  }

  start(): void {
    const { response, agents } = this.#passage;
    this.#sendBy(this.#isRepeatable ? agents.kept : agents.single);
    response.once("close", () => {
      this.#isOver = true;
      if (!response.writableFinished) this.#upstream?.destroy();
    });
  }

  #sendBy(agent: Agent): void {
    const { marked } = this.#passage;
    if (marked === undefined) this.#upstream = this.#send(agent);
    else void this.#sendMarked(marked, agent);
  }

  async #sendMarked({ admit }: MarkedRequest, agent: Agent): Promise<void> {
    const isAdmitted = await admit();
    if (this.#isOver) return;
    if (isAdmitted) this.#upstream = this.#send(agent);
    else this.#takeBack();
  }

  /** Answers the client without blaming the target, which has not failed. */
  #takeBack(): void {
    this.#isOver = true;
    answerFailure(this.#passage.response, notWanted());
  }

  #send(agent: Agent): ClientRequest {
    const { request, marked, idleMs, moved } = this.#passage;
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
    this.#settle(sent);
    if (this.#hasBody) pipeline(request, sent, () => {});
    else if (marked === undefined) sent.end();
    return sent;
  }

  /** Passes the answer back, or sends once more, or fails: whichever comes first. */
  #settle(sent: ClientRequest): void {
    let isSettled = false;
    let readBefore = 0;
    sent.once("socket", ({ bytesRead }) => {
      readBefore = bytesRead;
    });
    sent.once("response", (answer) => {
      isSettled = true;
      this.#passage.moved(socketOf(sent));
      this.#passBack(answer, socketOf(sent));
    });
    sent.on("error", (error) => {
      if (this.#isOver || isSettled) return;
      isSettled = true;
      const isStale = sent.reusedSocket && socketOf(sent).bytesRead === readBefore;
      // Once, over a connection of its own, which is no reused one.
      if (this.#isRepeatable && isStale && isClosed(error))
        this.#sendBy(this.#passage.agents.single);
      else this.#fail(error);
    });
    sent.once("close", () => {
      // An answer that switches protocols unasked ends so, without any other event.
      if (!isSettled) this.#fail(systemError("ECONNRESET", "closed without an answer"));
    });
  }

  async #leave(sent: ClientRequest, { mayLeave }: MarkedRequest): Promise<void> {
    const isDue = await mayLeave();
    if (this.#isOver || sent.destroyed) return;
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
      // Node's parser reads a few bytes in headers that it does not write.
      this.#fail(error);
      answer.destroy();
      return;
    }
    answer.on("data", () => moved(socket));
    answer.once("error", (error) => this.#fail(error));
    pipeline(answer, response, () => moved(socket));
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
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
