/**
 * `trunkline admin streams`: creates the streams and queues of this version. The role `actors` does the same when it
 * starts.
 */
import { TASKS } from "../../actors/main.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { storeSizes } from "../../schemas/store-sizes.ts";
import { configFromEnvironment } from "../config.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

/**
 * Needed for an upgrade in which each role has its own bus user: a role that may not create streams waits until the
 * new streams exist.
 */
export async function adminStreams(
  surplus: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (surplus.length > 0)
    throw new UsageError('Cannot run "admin streams": expected nothing after it');
  const config = configFromEnvironment(environment);
  const { replicas } = config;
  const sizes = storeSizes(config.storeBytes, config.storeSizes);
  await withBus(environment, (bus) =>
    declareStreams(bus.jetstream, { replicas, layout: bus.layout, sizes, tasks: TASKS }),
  );
  console.log("All streams and queues of this version are there");
}
