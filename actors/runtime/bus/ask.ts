/** Sends a request to a process that may be absent, and reports whether any process listened. */
import { type Msg, RequestError, TimeoutError } from "@nats-io/transport-node";
import { type Bus, BusLost } from "./bus.ts";

/**
 * `nobody`: no process listens on the subject. `silence`: no answer came, so a process may or may not have received
 * the request.
 */
export type Asked = { answer: Msg } | "nobody" | "silence";

export async function ask(
  bus: Bus,
  subject: string,
  payload: string,
  { timeoutMs }: { timeoutMs: number },
): Promise<Asked> {
  try {
    return { answer: await bus.request(subject, payload, { timeoutMs }) };
  } catch (error) {
    if (isNobody(error)) return "nobody";
    if (isSilence(error)) return "silence";
    throw error;
  }
}

/** True for the error of a request if no process listened on its subject. */
export const isNobody = (error: unknown): boolean =>
  error instanceof RequestError && error.isNoResponders();

/** True for the error of a request if no answer came. */
export const isSilence = (error: unknown): boolean =>
  [TimeoutError, BusLost, RequestError].some((kind) => error instanceof kind);

/**
 * Publishes immediately to the current subscribers, without an acknowledgement. Does nothing while the bus is away.
 */
export function tell(bus: Bus, subject: string, payload: string): void {
  if (!bus.isAway) bus.connection.publish(subject, payload);
}
