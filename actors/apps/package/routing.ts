/** Routes requests from an app's entry to its agents, by name or by path. */
import { kebabOf } from "../../../schemas/kebab.ts";
import type { Agent } from "./agent.ts";
import { AGENTS_PATH } from "./frames.ts";
import { AgentNamespace, type AgentStub, isAgentName, isUpgrade } from "./namespace.ts";

export interface AgentOptions {
  /** Passed to `onStart` if this request starts the agent. */
  props?: unknown;
}

/** The agent that a request addresses, by binding and name. */
export interface AgentRoute {
  className: string;
  name: string;
}

type Hook = (request: Request, route: AgentRoute) => unknown;

export interface RouteOptions extends AgentOptions {
  /** The path segments before an agent's class; defaults to `agents`. */
  prefix?: string;
  /** `true` permits every origin. An object contains the headers with which CORS preflight requests are answered. */
  cors?: boolean | Record<string, string>;
  /**
   * `onBeforeConnect` runs before a socket is opened, `onBeforeRequest` before any other request. Each may answer
   * instead of the agent, or change the request.
   */
  onBeforeConnect?: Hook;
  onBeforeRequest?: Hook;
}

const CORS_HEADERS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Methods": "GET, POST, HEAD, OPTIONS",
  "Access-Control-Allow-Headers": "*",
  "Access-Control-Max-Age": "86400",
};

// biome-ignore lint/suspicious/noExplicitAny: of any environment and state.
export async function getAgentByName<T = Agent<any, any>>(
  namespace: AgentNamespace<T>,
  name: string,
  options: AgentOptions = {},
): Promise<AgentStub<T>> {
  return namespace.stub(name, options.props);
}

/** Resolves with null if the path names no agent, so that the app answers the request itself. */
export async function routeAgentRequest(
  request: Request,
  env: object,
  options: RouteOptions = {},
): Promise<Response | null> {
  const prefix = (options.prefix ?? AGENTS_PATH).split("/").filter(Boolean);
  const segments = new URL(request.url).pathname.split("/").filter(Boolean);
  if (!prefix.every((segment, index) => segments[index] === segment)) return null;
  const [agent, encoded] = segments.slice(prefix.length);
  if (agent === undefined || encoded === undefined) return null;
  const cors = corsHeaders(options.cors);
  if (cors !== undefined && request.method === "OPTIONS") {
    return new Response(null, { headers: cors });
  }
  const found = Object.entries(env).find(
    ([binding, value]) => value instanceof AgentNamespace && kebabOf(binding) === agent,
  );
  const name = decode(encoded);
  if (found === undefined || !isAgentName(name)) {
    return withHeaders(new Response("Invalid request", { status: 400 }), cors);
  }
  const [className, namespace] = found as [string, AgentNamespace];
  const hook = isUpgrade(request) ? options.onBeforeConnect : options.onBeforeRequest;
  const changed = await hook?.(request, { className, name });
  if (changed instanceof Response) return withHeaders(changed, cors);
  const forAgent = changed instanceof Request ? changed : request;
  const response = await namespace.stub(name, options.props).fetch(forAgent);
  return isUpgrade(forAgent) ? response : withHeaders(response, cors);
}

function corsHeaders(cors: boolean | Record<string, string> | undefined): Headers | undefined {
  if (cors === undefined || cors === false) return undefined;
  return new Headers(cors === true ? CORS_HEADERS : cors);
}

function withHeaders(response: Response, headers: Headers | undefined): Response {
  if (headers === undefined) return response;
  const copy = new Response(response.body, response);
  for (const [name, value] of headers) copy.headers.set(name, value);
  return copy;
}

/** Returns undefined if the name is encoded incorrectly. */
function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
