/**
 * The frames that agents and their clients exchange, as existing clients expect them. Only this file contains their
 * names.
 */

export const FRAME = {
  identity: "cf_agent_identity",
  state: "cf_agent_state",
  stateError: "cf_agent_state_error",
  servers: "cf_agent_mcp_servers",
  call: "rpc",
} as const;

/** The segment of the path before an agent's class and name. */
export const AGENTS_PATH = "agents";

export const READONLY_ERROR = "Connection is readonly";
export const REJECTED_ERROR = "State update rejected";

type ClientFrame =
  | { type: "state"; state: unknown }
  | { type: "call"; id: string; method: string; args: unknown[] };

/** Parses a client's frame. Returns undefined if the frame is for the agent's own `onMessage`. */
export function readClientFrame(frame: string | Uint8Array): ClientFrame | undefined {
  // Most messages of apps are not JSON objects, so this check avoids parsing them.
  if (typeof frame !== "string" || !/^\s*\{/.test(frame)) return undefined;
  let read: Record<string, unknown>;
  try {
    read = JSON.parse(frame) as Record<string, unknown>;
  } catch {
    // The frame is not valid JSON, so it is not one of the protocol's frames.
    return undefined;
  }
  if (read.type === FRAME.state && "state" in read) return { type: "state", state: read.state };
  const { id, method, args } = read;
  if (read.type !== FRAME.call || typeof id !== "string" || typeof method !== "string") {
    return undefined;
  }
  return Array.isArray(args) ? { type: "call", id, method, args } : undefined;
}

/** `stateFollows` makes a client wait for the state before it is ready. */
export const identityFrame = (name: string, agent: string, hasState: boolean) =>
  JSON.stringify({
    type: FRAME.identity,
    name,
    agent,
    ...(hasState && { stateFollows: true }),
  });

export const stateFrame = (json: string) => `{"type":"${FRAME.state}","state":${json}}`;

export const stateErrorFrame = (error: string) => JSON.stringify({ type: FRAME.stateError, error });

/** Clients wait for this frame, although no agent here has tool servers. */
export const serversFrame = () =>
  JSON.stringify({
    type: FRAME.servers,
    mcp: { servers: {}, tools: [], prompts: [], resources: [] },
  });

export const resultFrame = (id: string, result: unknown, done = true) =>
  JSON.stringify({ type: FRAME.call, id, success: true, done, result });

export const errorFrame = (id: string, error: string) =>
  JSON.stringify({ type: FRAME.call, id, success: false, error });
