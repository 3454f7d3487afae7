/** Runs an operator's command with a connection to the bus. */
import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { RequestError, TimeoutError } from "@nats-io/transport-node";
import { Bus, BusLost } from "../../actors/runtime/bus/bus.ts";
import { readLayout } from "../../deploy/data-format.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { missingRight } from "../queues/missing-right.ts";
import { busOf } from "./bus-of.ts";

export async function withBus<R>(
  environment: NodeJS.ProcessEnv,
  ask: (bus: Bus) => Promise<R>,
): Promise<R> {
  const bus = await Bus.connect({ ...(await busOf(environment)), name: "trunkline-admin" });
  try {
    bus.layout = (await readLayout(bus.jetstream)) ?? FIRST_LAYOUT;
    return await ask(bus);
  } catch (cause) {
    const refused = missingRight(cause);
    if (refused) {
      const text = `this user may not ${refused.operation} ${refused.subject}; use that of admin.nk`;
      throw new Error(`Cannot ask the bus: ${text}`, { cause });
    }
    // Error messages of the NATS client are not full sentences, so this code completes them.
    const ofBus = [JetStreamApiError, JetStreamError, RequestError, TimeoutError, BusLost];
    if (!(cause instanceof Error) || !ofBus.some((type) => cause instanceof type)) throw cause;
    throw new Error(`Cannot ask the bus: ${cause.message}`, { cause });
  } finally {
    await bus.close();
  }
}
