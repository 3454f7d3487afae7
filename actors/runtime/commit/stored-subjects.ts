/** Lists the names of rows and keys that a state bucket holds. */
import {
  addressOf,
  type StateSubjects,
  stateBucket,
  stateSubjects,
} from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { journaledSubjects } from "./journal-replay.ts";

/** Names of the rows of a kind's actors whose keys have no dots; `name` may end in `.*`. */
export class RowNames {
  readonly #bus: Bus;
  readonly #buckets: number;

  constructor(bus: Bus, { buckets }: { buckets: number }) {
    this.#bus = bus;
    this.#buckets = buckets;
  }

  /** Returns the row names. The result may include rows that were removed within the last minute. */
  async list(kind: string, name: string): Promise<Set<string>> {
    const names = new Set<string>();
    for (let index = 0; index < this.#buckets; index++) {
      const subjects = stateSubjects(stateBucket(index));
      const { rowsOfAll, rowName } = subjects;
      const filter = rowsOfAll(kind, name);
      for (const subject of await committedSubjects(this.#bus, subjects, filter)) {
        names.add(rowName(subject));
      }
    }
    return names;
  }
}

/**
 * Lists the keys of a kind that begin with these tokens and have stored data. The result may include keys that were
 * removed within the last minute.
 */
export async function keysBeneath(
  bus: Bus,
  { kind, tokens, buckets }: { kind: string; tokens: string; buckets: number },
): Promise<Set<string>> {
  const keys = new Set<string>();
  for (let index = 0; index < buckets; index++) {
    const subjects = stateSubjects(stateBucket(index));
    const filter = subjects.beneath(addressOf(kind, tokens));
    for (const subject of await committedSubjects(bus, subjects, filter)) {
      keys.add(subjects.keyOf(kind, subject));
    }
  }
  return keys;
}

/**
 * Returns the subjects that match the filter, including subjects that only a journal holds. Reads the journals first:
 * a change that a checkpoint moves from a journal to its key meanwhile is then found in the key.
 */
async function committedSubjects(
  bus: Bus,
  subjects: StateSubjects,
  filter: string,
): Promise<Set<string>> {
  const found = await journaledSubjects(bus, subjects);
  for (const subject of found) if (!matches(filter, subject)) found.delete(subject);
  for (const subject of await bus.subjectsOf(subjects.stream, filter)) found.add(subject);
  return found;
}

/** Matches a subject as the bus does: `*` stands for one token, a last `>` for one or more. */
function matches(filter: string, subject: string): boolean {
  const wanted = filter.split(".");
  const tokens = subject.split(".");
  const isOpen = wanted.at(-1) === ">";
  if (isOpen ? tokens.length < wanted.length : tokens.length !== wanted.length) return false;
  return wanted.every((token, index) => token === "*" || token === ">" || token === tokens[index]);
}
