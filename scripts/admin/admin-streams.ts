/**
 * `trunkline admin streams`: creates the streams and queues of this version. The role `actors` does the same when it
 * starts, and lets the streams grow to their sizes.
 */
import { TASKS } from "../../actors/main.ts";
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import { declareStreams, whenClusterIsReady } from "../../deploy/streams.ts";
import { storeSizesOn } from "../account-limits.ts";
import { configFromEnvironment } from "../config.ts";
import { freeBytesOf } from "../disk-room.ts";
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
  const { replicas, natsUrl, dataDir } = config;
  // A stream that has grown never shrinks, and the settings of the sizes may be set for the hosts of actors alone. So
  // on outside servers no stream grows before the first host of this version starts. On the embedded server, the
  // sizes are those of the role `actors`.
  const grow = natsUrl === undefined;
  const disk = grow ? { freeBytes: await freeBytesOf(dataDir) } : undefined;
  const declare = async ({ jetstream, layout }: Bus) => {
    const sizes = await whenClusterIsReady(() => storeSizesOn({ jetstream }, config, disk));
    await declareStreams(jetstream, { replicas, layout, sizes, grow, tasks: TASKS });
  };
  await withBus(environment, declare, { layout: "wait" });
  console.log("All streams and queues of this version are there");
}
