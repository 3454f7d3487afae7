/** `trunkline admin trace`: prints the steps of one request through the gateway, actors, mail, tasks and workers. */
import { readSteps } from "../../actors/runtime/observe/request-steps.ts";
import { RequestId, type RequestStep, STEPS_KEPT } from "../../schemas/request-step.ts";
import { table } from "./table.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

export async function adminTrace(
  [id, ...surplus]: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (id === undefined || surplus.length > 0) {
    throw new UsageError('Cannot run "admin trace": expected one request id after it');
  }
  if (!RequestId.safeParse(id).success) {
    const expected = "1 to 128 letters, digits, _, ., : and -";
    throw new UsageError(`Cannot find request "${id}": expected ${expected}`);
  }
  const { signal } = new AbortController();
  const steps = await withBus(environment, (bus) => readSteps(bus, id, signal));
  if (steps.length === 0) {
    const kept = `there are no steps under this id; they are kept ${STEPS_KEPT}`;
    throw new Error(`Cannot find request "${id}": ${kept}`);
  }
  const startAt = steps[0]?.at ?? 0;
  console.log(`${id} at ${new Date(startAt).toISOString()}`);
  console.log(
    table(
      ["AFTER", "TOOK", "WAY", "WHAT", "OUTCOME"],
      steps.map((step) => rowOf(step, startAt)),
    ),
  );
}

function rowOf({ at, ms, way, name, key, error, level, status }: RequestStep, startAt: number) {
  const outcome = [status, level, error].filter((one) => one !== undefined).join(" ") || "ok";
  return [
    `${(at - startAt).toFixed(1)} ms`,
    way === "log" ? "-" : `${ms.toFixed(1)} ms`,
    way,
    key === undefined ? name : `${name} ${key}`,
    outcome,
  ];
}
