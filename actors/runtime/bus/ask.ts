/** Asks one who may be there or not: a core request that says which it was. */
import { type Msg, NoRespondersError, RequestError, TimeoutError } from "@nats-io/transport-node";
import { type Bus, BusLost } from "./bus.ts";

/** `nobody` listens on that subject; `silence`: who does may have heard it or not. */
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

/** Shows it to those who listen now; nobody is waited for. */
export function tell(bus: Bus, subject: string, payload: string): void {
  if (!bus.isAway) bus.connection.publish(subject, payload);
}
