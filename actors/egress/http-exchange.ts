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

export function exchange(passage: HttpExchange): void {
  const { request, response, idleMs, marked, moved } = passage;
  const hasBody =
    request.headers["transfer-encoding"] !== undefined ||
    Number(request.headers["content-length"] ?? 0) > 0;
  // What cannot be sent twice never travels on a connection that its origin may be about to close.
  const repeatable = SAFE_METHODS.has(request.method ?? "") && !hasBody;
  /** The client has left, or has been told how it ended: what comes later is of no interest. */
  let over = false;
  let upstream: ClientRequest | undefined;
  start(repeatable ? passage.agents.kept : passage.agents.single);
  response.once("close", () => {
    over = true;
    if (!response.writableFinished) upstream?.destroy();
  });

  function start(agent: Agent): void {
    if (marked === undefined) upstream = send(agent);
    else void startMarked(marked, agent);
  }

  async function startMarked({ admit }: MarkedRequest, agent: Agent): Promise<void> {
    const isAdmitted = await admit();
    if (over) return;
    if (isAdmitted) upstream = send(agent);
    else takeBack();
  }

  /** It is no failure of its target. */
  function takeBack(): void {
    over = true;
    answerFailure(response, notWanted());
  }

  function send(agent: Agent): ClientRequest {
    const sent = httpRequest({ ...targetOf(passage), agent });
    let settled = false;
    let readBefore = 0;
    sent.once("socket", ({ bytesRead }) => {
      readBefore = bytesRead;
    });
    sent.maxHeadersCount = 0;
    sent.setTimeout(idleMs, () => {
      fail(systemError("ETIMEDOUT", "nothing moved for too long"));
      sent.destroy();
    });
    if (marked !== undefined) {
      sent.once("socket", () => void leave(sent, marked));
      sent.once("finish", marked.onSent);
    }
    sent.on("information", () => moved(socketOf(sent)));
    sent.once("response", (answer) => {
      settled = true;
      moved(socketOf(sent));
      passBack(answer, socketOf(sent));
    });
    sent.on("error", (error) => {
      if (over || settled) return;
      settled = true;
      const isStale = sent.reusedSocket && socketOf(sent).bytesRead === readBefore;
      // Once, over a connection of its own, which is no reused one.
      if (repeatable && isStale && isClosed(error)) start(passage.agents.single);
      else fail(error);
    });
    sent.once("close", () => {
      // An answer that switches protocols unasked ends so, without any other event.
      if (!settled) fail(systemError("ECONNRESET", "closed without an answer"));
    });
    if (hasBody) pipeline(request, sent, () => {});
    else if (marked === undefined) sent.end();
    return sent;
  }

  async function leave(sent: ClientRequest, { mayLeave }: MarkedRequest): Promise<void> {
    const isDue = await mayLeave();
    if (over || sent.destroyed) return;
    if (isDue) {
      sent.end();
      return;
    }
    takeBack();
    sent.destroy();
  }

  function passBack(answer: IncomingMessage, socket: Socket) {
    const headers = endToEndHeaders(answer.rawHeaders);
    try {
      response.writeHead(answer.statusCode ?? 0, answer.statusMessage ?? "", headers);
    } catch (error) {
      // Node's parser reads a few bytes in headers that it does not write.
      fail(error);
      answer.destroy();
      return;
    }
    answer.on("data", () => moved(socket));
    answer.once("error", fail);
    pipeline(answer, response, () => moved(socket));
  }

  function fail(error: unknown) {
    if (over) return;
    over = true;
    passage.failed(error);
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
