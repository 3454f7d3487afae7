/** `trunkline admin streams`: makes the streams and queues of this version, as the role `actors` does at its start. */
import { TASKS } from "../../actors/main.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { STATE_BUCKETS } from "../../schemas/limits.ts";
import { configFromEnvironment } from "../config.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

/** For an upgrade where each role has a user: processes that may not make streams wait for those that are new. */
export async function adminStreams(
  surplus: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (surplus.length > 0)
    throw new UsageError('Cannot run "admin streams": expected nothing after it');
  const { replicas } = configFromEnvironment(environment);
  await withBus(environment, (bus) =>
    declareStreams(bus.jetstream, { replicas, buckets: STATE_BUCKETS, tasks: TASKS }),
  );
  console.log("All streams and queues of this version are there");
}
