/** Bindings that call the platform's REST API on behalf of the app. */
import type { Operation } from "../../../schemas/apps/app-process.ts";
import { ERRORS } from "../../../schemas/errors.ts";
import type { ApiError } from "../package/api-error.ts";
import { running } from "../package/current-agent.ts";
import type { Page, RestBinding } from "../package/rest-binding.ts";
import { toProcessRequest, toResponse } from "./exchange.ts";
import type { HostLink } from "./host-link.ts";

/** Placeholder for the URL of the account in the API. The host replaces it. */
const ORIGIN = "http://trunkline";
const NO_CONTENT = 204;

type Values = Readonly<Record<string, string | number | boolean | undefined>>;

interface Call {
  method?: string;
  query?: Values | undefined;
  json?: unknown;
}

interface Listed<T> {
  result: T[];
  info: { cursor?: string; total_count?: number };
}

/** Calls the API for the methods of bindings. If the API refuses, throws its error. */
export interface RestCalls {
  one<T>(path: string, call?: Call): Promise<T>;
  list<T>(path: string, query?: Values): Promise<Listed<T>>;
  bytes(path: string, call?: Call): Promise<Response>;
}

/**
 * A binding from which a binding for another namespace can be created. The host refuses namespaces that the app's
 * configuration does not bind.
 */
export interface RestDoor extends RestBinding {
  in?(namespace: string): RestDoor;
}

export function restBinding(
  link: HostLink,
  permission: (Operation & { type: "rest" })["permission"],
  namespace: string | undefined,
  bytesMax: number,
): RestDoor {
  return {
    namespace,
    in: (other: string) => restBinding(link, permission, other, bytesMax),
    async fetch(path: string, init?: RequestInit) {
      const request = await toProcessRequest(new Request(new URL(path, ORIGIN), init), bytesMax);
      const { open } = running() ?? {};
      const result = await link.operate(
        { type: "rest", permission, ...(namespace !== undefined && { namespace }), request },
        open && { number: open.number, after: open.gate.after() },
      );
      if (result.type !== "answer") throw new TypeError("Cannot read the answer");
      return toResponse(result.answer, link);
    },
  };
}

export function restCalls(
  binding: RestBinding,
  toError: (response: Response) => Promise<Error>,
): RestCalls {
  const bytes = async (path: string, { method = "GET", query = {}, json }: Call = {}) => {
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) asked.set(name, String(value));
    }
    const response = await binding.fetch(`${path}?${asked}`, {
      method,
      ...(json !== undefined && {
        body: JSON.stringify(json),
        headers: { "content-type": "application/json" },
      }),
    });
    if (!response.ok) throw await toError(response);
    return response;
  };
  return {
    bytes,
    async one<T>(path: string, call?: Call): Promise<T> {
      const response = await bytes(path, call);
      if (response.status === NO_CONTENT) return undefined as T;
      return ((await response.json()) as { result: T }).result;
    },
    async list<T>(path: string, query?: Values): Promise<Listed<T>> {
      const body = await (await bytes(path, { query })).json();
      const { result, result_info: info = {} } = body as {
        result: T[];
        result_info?: Listed<T>["info"];
      };
      return { result, info };
    },
  };
}

export function pageOf({ cursor, total_count: total }: Listed<unknown>["info"]): Page {
  return { ...(cursor !== undefined && { cursor }), ...(total !== undefined && { total }) };
}

/**
 * Returns a function that converts responses with an error to thrown errors. It maps the API's error numbers to
 * names: the common ones and those of this part.
 */
export function errorReader(
  Thrown: typeof ApiError,
  own: Readonly<Record<number, string>> = {},
): (response: Response) => Promise<ApiError> {
  return async (response) => {
    const { status } = response;
    const body = await response.text();
    const first = firstError(body);
    const numericCode = first?.code ?? 0;
    const name = Object.entries(ERRORS).find(([, { code }]) => code === numericCode)?.[0];
    const code = own[numericCode] ?? name?.toUpperCase() ?? "INTERNAL_ERROR";
    const message = first?.message ?? `The API answered ${status}`;
    const pointer = first?.source?.pointer;
    return new Thrown(message, { code, numericCode, status, pointer });
  };
}

interface WireError {
  code: number;
  message: string;
  source?: { pointer: string };
}

function firstError(body: string): WireError | undefined {
  try {
    return (JSON.parse(body) as { errors?: WireError[] }).errors?.[0];
  } catch {
    return undefined; // What is before the API may answer in other words.
  }
}
