/** Messages of the DevTools protocol, as they are on the pipe to a browser. */

export type Json = { [name: string]: unknown };

export interface CdpCommand {
  id: number;
  method: string;
  params: Json;
  sessionId?: string | undefined;
}

/** A response or an event of the browser. */
export interface CdpMessage {
  id?: number;
  method?: string;
  params?: Json;
  result?: Json;
  error?: { code: number; message: string };
  sessionId?: string;
}

/** Ids of the protocol are 32-bit integers. */
const ID_MAX = 2 ** 31 - 1;

/**
 * Reads a command of a client, or returns a description of its fault. Only known fields are copied, so the browser
 * never reads JSON that this process did not write.
 */
export function readCommand(text: string): CdpCommand | { error: string; id?: number } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { error: "Message must be a valid JSON" };
  }
  if (!isObject(value)) return { error: "Message must be an object" };
  const { id, method, params = {}, sessionId } = value;
  if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id > ID_MAX) {
    return { error: "Message must have integer 'id' property" };
  }
  if (typeof method !== "string")
    return { id, error: "Message must have string 'method' property" };
  if (!isObject(params)) return { id, error: "Message may have object 'params' property" };
  if (sessionId !== undefined && typeof sessionId !== "string") {
    return { id, error: "Message may have string 'sessionId' property" };
  }
  return { id, method, params, sessionId };
}

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The protocol's codes of errors. */
export const CDP_ERRORS = {
  invalidRequest: -32_600,
  notFound: -32_601,
  server: -32_000,
  noSession: -32_001,
} as const;
