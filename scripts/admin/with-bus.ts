/** Runs an operator's command with a connection to the bus. */
import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { RequestError, TimeoutError } from "@nats-io/transport-node";
import { Bus, BusLost } from "../../actors/runtime/bus/bus.ts";
import { readLayout } from "../../deploy/data-format.ts";
import { whenClusterIsReady } from "../../deploy/streams.ts";
import type { DataLayout } from "../../schemas/data-layout.ts";
import { stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import { missingRight } from "../queues/missing-right.ts";
import { busOf } from "./bus-of.ts";

/**
 * `layout` says what happens while no server tells the layout of the data: by default the command fails. With "wait"
 * it waits for a cluster that starts. With "none" the command does not need the layout.
 */
export async function withBus<R>(
  environment: NodeJS.ProcessEnv,
  ask: (bus: Bus) => Promise<R>,
  { layout = "fail" }: { layout?: "fail" | "wait" | "none" } = {},
): Promise<R> {
  const bus = await Bus.connect({ ...(await busOf(environment)), name: "trunkline-admin" });
  try {
    const read = () => readLayout(bus.jetstream);
    if (layout !== "none") {
      bus.layout = await readOrRefuse(layout === "wait" ? () => whenClusterIsReady(read) : read);
    }
    return await ask(bus);
  } catch (cause) {
    const refused = missingRight(cause);
    if (refused) {
      const text = `this user may not ${refused.operation} ${refused.subject}; use that of admin.nk`;
      throw new Error(`Cannot ask the bus: ${text}`, { cause });
    }
    // Error messages of the NATS client are not full sentences, so this code completes them.
    if (!isOfBus(cause)) throw cause;
    throw new Error(`Cannot ask the bus: ${cause.message}`, { cause });
  } finally {
    await bus.close();
  }
}

/**
 * Reads how many shards and streams the data has. Assumes nothing while the bus is not ready: a command that reads too
 * few streams would report too little, and `dead retry` would deliver letters to a stream that nobody reads.
 */
async function readOrRefuse(read: () => Promise<DataLayout>): Promise<DataLayout> {
  try {
    return await read();
  } catch (cause) {
    if (!isOfBus(cause) || missingRight(cause)) throw cause;
    const { stream } = stateSubjects(stateBucket(0));
    throw new Error(
      `Cannot ask the bus: it is not ready, because stream ${stream} has no leader; start the servers of the bus that are away (nats stream info ${stream} names them), and try again`,
      { cause },
    );
  }
}

function isOfBus(cause: unknown): cause is Error {
  const types = [JetStreamApiError, JetStreamError, RequestError, TimeoutError, BusLost];
  return cause instanceof Error && types.some((type) => cause instanceof type);
}
