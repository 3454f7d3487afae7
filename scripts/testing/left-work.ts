/** Finds work that nobody has done although every load has ended. */
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import { splitNames } from "../../schemas/split-streams.ts";
import { STREAMS } from "../../schemas/subjects.ts";
import { until } from "./until.ts";

const POLL_MS = 500;

/**
 * Waits up to `withinMs` until no mail and no task is left. Returns the subjects that still have messages, the number
 * of dead letters, and the streams above their byte limits.
 */
export async function findLeftWork(bus: Bus, withinMs: number): Promise<string[]> {
  let left: string[] = [];
  const isDone = async () => {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    left = (
      await Promise.all(
        [STREAMS.mail, STREAMS.tasks]
          .flatMap((store) => splitNames(bus.layout, store))
          .map((name) => leftIn(bus, name)),
      )
    ).flat();
    return left.length === 0;
  };
  await until("all work is done", isDone, withinMs).catch(() => {}); // The caller reports what is left.
  const found = [...left];
  for await (const { config, state } of bus.jetstream.streams.list()) {
    if (config.name === STREAMS.dead && state.messages > 0) {
      found.push(`${state.messages} dead letters`);
    }
    if (config.max_bytes > 0 && state.bytes > config.max_bytes) {
      found.push(`${config.name} has ${state.bytes} bytes of ${config.max_bytes}`);
    }
  }
  return found;
}

async function leftIn(bus: Bus, stream: string): Promise<string[]> {
  const { state } = await bus.jetstream.streams.info(stream, { subjects_filter: ">" });
  return (
    Object.entries(state.subjects ?? {})
      // Ignores the mark that a stream of mail holds for each shard that has sent mail.
      .filter(([subject]) => !/^sent(-\d+)?\./.test(subject))
      .map(([subject, count]) => `${count} of ${subject} are left`)
  );
}
