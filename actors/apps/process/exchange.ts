/** Converts requests and answers between the form of the channel to the host and the web's Request and Response. */
import type { ProcessAnswer, ProcessRequest } from "../../../schemas/apps/app-process.ts";
import { describe } from "../package/describe.ts";
import { AgentRefusal } from "../package/refusal.ts";
import type { HostLink } from "./host-link.ts";
import { lentBody, takeUntouched } from "./lent-streams.ts";
import { readBody, readBodyWithin, type UnreadBody } from "./read-body.ts";

/**
 * If a body is not complete this long after the head of its answer, the answer is sent as a stream. An event stream
 * is always sent as a stream, without this wait.
 */
const APP_ANSWER_WHOLE_MS = 100;

/** The header that carries an agent's start properties. It is never accepted from outside. */
export const PROPS_HEADER = "x-trunkline-agent-props";
const NO_BODY = new Set([101, 204, 205, 304]);

export function toRequest(wire: ProcessRequest): Request {
  const { method, url, headers, body } = wire;
  const hasBody = body !== undefined && method !== "GET" && method !== "HEAD";
  try {
    return new Request(url, {
      method,
      headers: headers.filter(([name]) => name !== PROPS_HEADER),
      // The Response copies the body.
      ...(hasBody && { body: body as Uint8Array<ArrayBuffer> }),
    });
  } catch (cause) {
    const { message } = cause as Error;
    throw new AgentRefusal("invalid_request", `Cannot read the request: ${message}`, { cause });
  }
}

export async function toProcessRequest(
  request: Request,
  bytesMax: number,
): Promise<ProcessRequest> {
  // If the body has been read, the request would be passed on without its body.
  if (request.bodyUsed) {
    throw new TypeError("Cannot pass on the request: its body has been read, read a clone() of it");
  }
  const body = await readBody(request, bytesMax);
  return {
    method: request.method,
    url: request.url,
    headers: headersOf(request.headers).filter(([name]) => name !== PROPS_HEADER),
    ...(body !== undefined && { body }),
  };
}

/**
 * Converts a Response. If the body is not complete in time, `open` assigns a stream number to it. Without `open`,
 * waits for the whole body.
 */
export async function toProcessAnswer(
  response: unknown,
  bytesMax: number,
  open?: (unread: UnreadBody) => number,
): Promise<ProcessAnswer> {
  if (!(response instanceof Response)) {
    throw new TypeError(`Cannot answer: expected a Response, not ${describe(response)}`);
  }
  if (response.type === "error")
    throw new TypeError("Cannot answer: Response.error() is no answer");
  const head = { status: response.status, headers: headersOf(response.headers) };
  const lent = open && takeUntouched(response);
  if (lent) return { ...head, lent: lent.lent, ...(lent.first && { body: lent.first }) };
  const within = open && { ms: isEventStream(response) ? 0 : APP_ANSWER_WHOLE_MS };
  const { body, unread } = await readBodyWithin(response, bytesMax, within);
  return {
    ...head,
    ...(body !== undefined && { body }),
    ...(unread !== undefined && { stream: open?.(unread) }),
  };
}

/** Converts an answer to a Response. `link` reads the rest of a streamed body. */
export function toResponse(
  { status, headers, body, lent }: ProcessAnswer,
  link: HostLink,
  url?: string,
): Response {
  const whole = lent === undefined ? new Uint8Array(body ?? []) : lentBody(link, lent, body);
  const response = new Response(NO_BODY.has(status) ? null : whole, { status, headers });
  if (url !== undefined) Object.defineProperty(response, "url", { value: url });
  return response;
}

/** Events must reach their reader without delay (HTML, section 9.2), so a response with this type is streamed. */
const isEventStream = ({ headers }: Response) =>
  /^text\/event-stream\s*(;|$)/i.test(headers.get("content-type") ?? "");

function headersOf(headers: Headers): [string, string][] {
  return [...headers];
}
