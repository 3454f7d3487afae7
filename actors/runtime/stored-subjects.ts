/** Which subjects a stream holds, by its leader: names of rows and blobs, without what is in them. */
import { stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import type { Bus } from "./bus.ts";

/** A listing of more than the server gives at once may miss what moves meanwhile. */
export async function subjectsOf(bus: Bus, stream: string, filter: string): Promise<string[]> {
  const { state } = await bus.whileConnected(() =>
    bus.jetstream.streams.info(stream, { subjects_filter: filter }),
  );
  return Object.keys(state.subjects ?? {});
}

/** Names of the rows that actors of a kind have, of all keys without dots; `name` may end in `.*`. */
export class RowNames {
  readonly #bus: Bus;
  readonly #buckets: number;

  constructor(bus: Bus, { buckets }: { buckets: number }) {
    this.#bus = bus;
    this.#buckets = buckets;
  }

  /** What was removed within the last minute may be among them. */
  async list(kind: string, name: string): Promise<Set<string>> {
    const names = new Set<string>();
    for (let index = 0; index < this.#buckets; index++) {
      const { stream, rowsOfAll, rowName } = stateSubjects(stateBucket(index));
      const subjects = await subjectsOf(this.#bus, stream, rowsOfAll(kind, name));
      for (const subject of subjects) names.add(rowName(subject));
    }
    return names;
  }
}
