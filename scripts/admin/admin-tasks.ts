/**
 * `trunkline admin tasks`: shows the numbers of waiting and running tasks of each lane, and the age of its oldest
 * task.
 */
import { type Lane, readQueues } from "../queues/queues.ts";
import { age } from "./age.ts";
import { table } from "./table.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

export async function adminTasks(
  surplus: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (surplus.length > 0)
    throw new UsageError('Cannot run "admin tasks": expected nothing after it');
  const { lanes } = await withBus(environment, readQueues);
  if (lanes.length === 0) console.log("No lanes");
  else console.log(table(["LANE", "WAITING", "RUNNING", "OLDEST"], lanes.map(rowOf)));
}

function rowOf({ kind, lane, waiting, running, isFull, oldestAt }: Lane) {
  const full = isFull ? "  full" : "";
  return [`${kind}.${lane}`, waiting, running, `${oldestAt ? age(oldestAt) : "-"}${full}`];
}
