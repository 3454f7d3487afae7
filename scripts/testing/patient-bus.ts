/** A connection to the bus for a test's own requests, which may take long on a busy machine. */
import { jetstreamManager } from "@nats-io/jetstream";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { connectTo } from "../../actors/runtime/bus/connect-to.ts";

/**
 * Timeout of a JetStream request. A machine may stand still for seconds, and the last of a thousand writes waits for
 * all others.
 */
const ANSWER_MS_MAX = 20_000;

/**
 * Connects to a single server. Not for a cluster: the product's short timeout repeats requests that were lost in the
 * election of a leader.
 */
export async function connectPatiently(url: string): Promise<Bus> {
  const connection = await connectTo({ url, name: "test" });
  const options = { checkAPI: false, timeout: ANSWER_MS_MAX };
  return new Bus(connection, await jetstreamManager(connection, options));
}
