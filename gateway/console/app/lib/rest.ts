/**
 * Client of the REST API for the console. It authenticates with the session cookie, and with a header that no other
 * site can send.
 */
import { ROOT } from "./router.ts";

export interface RestRequest {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path below /v4, with the query string. */
  path: string;
  json?: unknown;
  headers?: Readonly<Record<string, string>>;
}

export interface RestAnswer<T> {
  result: T;
  info: ResultInfo;
}

/** The page numbers of a result, or the cursor of a list. */
export interface ResultInfo {
  page?: number;
  per_page?: number;
  count?: number;
  total_count?: number;
  total_pages?: number;
  cursor?: string;
}

interface Fault {
  message: string;
  source?: { pointer: string };
}

/** An error response of the REST API. `fields` has the error messages of request fields, by JSON pointer. */
export class RestError extends Error {
  readonly status: number;
  readonly fields: ReadonlyMap<string, string>;
  readonly requestId: string | undefined;

  constructor(status: number, faults: readonly Fault[], requestId?: string | null) {
    // Removes duplicates, because two rules may refuse one field with the same message.
    super([...new Set(faults.map(({ message }) => message))].join("\n"));
    this.status = status;
    this.requestId = requestId ?? undefined;
    const named = faults.flatMap(({ message, source }) =>
      source ? [[source.pointer, message] as const] : [],
    );
    this.fields = new Map(named);
  }
}

/** The status of a RestError if no response arrived. */
export const UNREACHABLE = 0;
/** The status of a RestError if the console itself failed. */
export const CONSOLE_FAULT = -1;

/** Converts any thrown value to a RestError, because pages can show only this type of error. */
export const asRefusal = (thrown: unknown) =>
  thrown instanceof RestError
    ? thrown
    : new RestError(CONSOLE_FAULT, [{ message: String(thrown) }]);

/** Creates an error of the page itself. If `pointer` is given, the error is shown beside this field. */
export const refuse = (message: string, pointer?: string) =>
  new RestError(400, [{ message, ...(pointer && { source: { pointer } }) }]);

/** Returns a request that creates or starts something. */
export const post = (path: string, json?: unknown) => ({ method: "POST", path, json }) as const;

/** Sends a request, and resolves with the result and its page numbers. Rejects with a RestError. */
export async function ask<T>(request: RestRequest, signal?: AbortSignal): Promise<RestAnswer<T>> {
  const response = await send(request, signal);
  if (response.status === 204) return { result: undefined as T, info: {} };
  const text = await whole(response.text(), signal);
  try {
    const { result, result_info: info = {} } = JSON.parse(text);
    return { result, info };
  } catch {
    const message = `Cannot read the answer: it has the status ${response.status}, and is no JSON.`;
    throw new RestError(CONSOLE_FAULT, [{ message }], response.headers.get("x-request-id"));
  }
}

/** Resolves with the whole body of a response. Rejects with a RestError if the connection breaks before the end. */
export const whole = <T>(body: Promise<T>, signal?: AbortSignal): Promise<T> =>
  body.catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new RestError(UNREACHABLE, [
      { message: "The connection broke before the answer's end." },
    ]);
  });

const PER_PAGE = 100;

/** Reads all pages of a list, and resolves with all entries. */
export async function allOf<T>(path: string, signal?: AbortSignal): Promise<T[]> {
  const all: T[] = [];
  for (let page = 1; ; page++) {
    const query = queryOf({ page: String(page), per_page: String(PER_PAGE) });
    const { result, info } = await ask<T[]>({ path: path + query }, signal);
    all.push(...result);
    if (page >= (info.total_pages ?? 1)) return all;
  }
}

/** Sends a request, and resolves to its result. */
export const resultOf = async <T>(request: RestRequest, signal?: AbortSignal) =>
  (await ask<T>(request, signal)).result;

/** What a button does: sends a request, or calls a function. */
export type Act = RestRequest | (() => Promise<unknown>);

export const perform = (act: Act) => (typeof act === "function" ? act() : resultOf(act));

export type Query = Readonly<Record<string, string | undefined>>;

/** Returns the query string with its question mark. Omits empty values. */
export function queryOf(query: Query): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  const text = new URLSearchParams(given).toString();
  return text && `?${text}`;
}

/**
 * Sends a request, and resolves with the response. Its body may be a file or a stream of events. Rejects with a
 * RestError.
 */
export async function send(request: RestRequest, signal?: AbortSignal): Promise<Response> {
  const { method = "GET", path, json, headers } = request;
  const response = await fetch(`${ROOT}/v4${path}`, {
    method,
    headers: {
      "X-Trunkline-Session": "use",
      ...(json !== undefined && { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    const message = "The platform cannot be reached. Is it running?";
    throw new RestError(UNREACHABLE, [{ message }]);
  });
  if (response.ok) return response;
  if (response.status === 401) leadToSignIn();
  throw await refusalOf(response);
}

async function refusalOf(response: Response): Promise<RestError> {
  const id = response.headers.get("x-request-id");
  try {
    const { errors } = await response.json();
    return new RestError(response.status, errors, id);
  } catch {
    // The response is not from the platform, perhaps from a proxy in front of it, so the message shows only its
    // status.
    return new RestError(response.status, [{ message: sayingNothing(response) }], id);
  }
}

/** Returns the message for a response that is not in the platform's format. */
export const sayingNothing = ({ status }: Response) =>
  `The answer has the status ${status}, and says nothing that can be shown.`;

/**
 * Redirects to the sign-in page, because the session has ended. After the sign-in, the person returns to this page.
 */
function leadToSignIn(): void {
  const here = location.pathname.slice(ROOT.length) + location.search;
  location.assign(`${ROOT}/login?${new URLSearchParams({ next: here })}`);
}

/** Returns a shell command that sends the request, with a token from the environment. */
export function curlOf({ method = "GET", path, json, headers = {} }: RestRequest): string {
  const parts = [
    `curl '${quoted(`${location.origin}${ROOT}/v4${path}`)}'`,
    `-H "Authorization: Bearer $TOKEN"`,
  ];
  if (method !== "GET") parts.splice(1, 0, `-X ${method}`);
  for (const [name, value] of Object.entries(headers)) parts.push(`-H '${name}: ${value}'`);
  if (json !== undefined) {
    parts.push("-H 'Content-Type: application/json'", `-d '${quoted(JSON.stringify(json))}'`);
  }
  return parts.join(" \\\n  ");
}

const quoted = (text: string) => text.replaceAll("'", `'\\''`);

interface ServerEvent {
  event: string;
  data: string;
}

/**
 * Reads server-sent events until the stream ends or the signal aborts. EventSource is not usable, because it cannot
 * send the header.
 */
export async function* eventsOf(path: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const { body } = await send({ path }, signal);
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) return;
    text += value;
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop() ?? "";
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block: string): ServerEvent {
  const lines = block.split(/\r?\n/);
  const of = (name: string) =>
    lines
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).trimStart());
  return { event: of("event")[0] ?? "message", data: of("data").join("\n") };
}
