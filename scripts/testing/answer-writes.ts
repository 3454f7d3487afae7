/**
 * Answers the first writes to some subjects in place of the bus, as the leader of a replicated stream does while it
 * cannot reach its followers. A real leader in this state takes seconds to lose its office.
 */
import { type Msg, TimeoutError } from "@nats-io/transport-node";
import type { Bus } from "../../actors/runtime/bus/bus.ts";

/** A write to the same subject is in process. */
export const SUBJECT_IN_PROCESS = 10_164;
/** A message with the same id is in process. */
export const ID_IN_PROCESS = 10_158;

/**
 * The first requests on subjects that `isMeant` selects get `answers` in turn: no answer, that of the bus, or a refusal
 * with this error code. Only those with the answer `bus` reach the bus. Later requests do. The returned function ends
 * this.
 */
export function answerWrites(
  bus: Bus,
  isMeant: (subject: string) => boolean,
  answers: readonly ("none" | "bus" | number)[],
): () => void {
  const left = [...answers];
  const request = bus.request.bind(bus);
  bus.request = async (subject, ...rest) => {
    const answer = isMeant(subject) ? left.shift() : undefined;
    if (answer === undefined || answer === "bus") return await request(subject, ...rest);
    if (answer === "none") throw new TimeoutError();
    const error = { err_code: answer, description: "in process" };
    return { json: () => ({ seq: 0, error }) } as unknown as Msg;
  };
  return () => {
    bus.request = request;
  };
}
