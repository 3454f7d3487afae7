/** Requests and answers: from the shapes that cross to the host to those of the web, and back. */
import { APP_STACK_CHARS_MAX } from "../../schemas/app-limits.ts";
import type { ProcessAnswer, ProcessError, ProcessRequest } from "../../schemas/app-process.ts";
import { AgentRefusal } from "../refusal.ts";

/** What an agent starts with, on its way to it: never from outside. */
export const PROPS_HEADER = "x-trunkline-agent-props";
const NO_BODY = new Set([101, 204, 205, 304]);

export function toRequest(wire: ProcessRequest): Request {
  const { method, url, headers, body } = wire;
  const hasBody = body !== undefined && method !== "GET" && method !== "HEAD";
  try {
    return new Request(url, {
      method,
      headers: headers.filter(([name]) => name !== PROPS_HEADER),
      ...(hasBody && { body: new Uint8Array(body) }),
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
  // Else it would be passed on without one.
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

export async function toProcessAnswer(response: unknown, bytesMax: number): Promise<ProcessAnswer> {
  if (!(response instanceof Response)) {
    throw new TypeError(`Cannot answer: expected a Response, not ${describe(response)}`);
  }
  if (response.type === "error")
    throw new TypeError("Cannot answer: Response.error() is no answer");
  const body = await readBody(response, bytesMax);
  return {
    status: response.status,
    headers: headersOf(response.headers),
    ...(body !== undefined && { body }),
  };
}

export function toResponse({ status, headers, body }: ProcessAnswer, url?: string): Response {
  const response = new Response(NO_BODY.has(status) ? null : new Uint8Array(body ?? []), {
    status,
    headers,
  });
  if (url !== undefined) Object.defineProperty(response, "url", { value: url });
  return response;
}

export function toProcessError(error: unknown): ProcessError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  return {
    name: String(error.name),
    message: String(error.message),
    ...(error instanceof AgentRefusal && { refusal: error.refusal }),
    ...(typeof error.stack === "string" && { stack: error.stack.slice(0, APP_STACK_CHARS_MAX) }),
  };
}

/** As another agent, or the host, threw it. */
export function toError({ name, message, refusal }: ProcessError): Error {
  if (refusal !== undefined) return new AgentRefusal(refusal, message);
  const error = new Error(message);
  error.name = name;
  return error;
}

function headersOf(headers: Headers): [string, string][] {
  return [...headers];
}

async function readBody(
  from: Request | Response,
  bytesMax: number,
): Promise<Uint8Array | undefined> {
  if (from.body === null) return undefined;
  const reader = (from.body as ReadableStream<unknown>).getReader();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value: part } = await reader.read();
      if (done) return new Uint8Array(Buffer.concat(parts));
      if (!(part instanceof Uint8Array)) {
        throw new TypeError(`Cannot read a body: a part is ${describe(part)}, not bytes`);
      }
      bytes += part.length;
      if (bytes > bytesMax) {
        throw new AgentRefusal(
          "body_too_large",
          `Cannot pass on a body: it is larger than ${bytesMax} bytes`,
        );
      }
      parts.push(part);
    }
  } catch (error) {
    // Whoever writes it is told that nobody reads on.
    reader.cancel(error).catch(() => {});
    throw error;
  }
}

function describe(value: unknown): string {
  if (value === null || typeof value !== "object") return String(value);
  return `a ${value.constructor?.name ?? "bare object"}`;
}
