/** Sends a request to a process that may be absent, and says whether it was. */
import { type Msg, NoRespondersError, RequestError, TimeoutError } from "@nats-io/transport-node";
import { type Bus, BusLost } from "./bus.ts";

/** `nobody`: no process listens on that subject. `silence`: one listens, and may have received the request or not. */
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
    const isNobody =
      error instanceof NoRespondersError ||
      (error instanceof RequestError && error.isNoResponders());
    if (isNobody) return "nobody";
    const isSilence = [TimeoutError, BusLost, RequestError].some((kind) => error instanceof kind);
    if (isSilence) return "silence";
    throw error;
  }
}

/** Publishes to the present listeners at once, and waits for nobody. */
export function tell(bus: Bus, subject: string, payload: string): void {
  if (!bus.isAway) bus.connection.publish(subject, payload);
}
