/** `trunkline admin dead`: lists, shows, retries and drops messages nobody could handle. */
import { Bus } from "../../actors/runtime/bus.ts";
import {
  type DeadLetter,
  dropDeadLetter,
  findDeadLetter,
  listDeadLetters,
  retryDeadLetter,
} from "../../actors/runtime/dead-letters.ts";
import { busOf } from "./bus-of.ts";
import { UsageError } from "./usage-error.ts";

const ERROR_CHARACTERS = 80;

export async function adminDead(
  [verb, which, ...more]: string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const needed = { list: 0, show: 1, retry: 1, drop: 1 }[verb ?? ""];
  if (needed === undefined) {
    throw new UsageError(
      `Cannot run "admin dead ${verb ?? ""}": expected list, show, retry or drop`,
    );
  }
  if (more.length > 0 || (needed === 0) !== (which === undefined)) {
    const expected = needed === 0 ? "nothing after it" : "one number, or --all";
    throw new UsageError(`Cannot run "admin dead ${verb}": expected ${expected}`);
  }
  const bus = await Bus.connect({ ...(await busOf(environment)), name: "trunkline-admin" });
  try {
    if (verb === "list") await list(bus);
    else if (verb === "show") console.log(JSON.stringify(await one(bus, which), undefined, 2));
    else if (verb === "retry") await each(bus, which, "sent again", retryDeadLetter);
    else await each(bus, which, "dropped", dropDeadLetter);
  } finally {
    await bus.close();
  }
}

async function list(bus: Bus): Promise<void> {
  let count = 0;
  for await (const letter of listDeadLetters(bus)) {
    const { sequence, address, message, tries, buriedAt, error } = letter;
    const [line = ""] = error.split("\n");
    const columns = [
      sequence,
      new Date(buriedAt).toISOString(),
      address,
      message,
      `${tries} tries`,
    ];
    console.log([...columns, line.slice(0, ERROR_CHARACTERS)].join("  "));
    count += 1;
  }
  if (count === 0) console.log("No dead letters");
}

async function each(
  bus: Bus,
  which: string | undefined,
  done: string,
  act: (bus: Bus, letter: DeadLetter) => Promise<void>,
): Promise<void> {
  // All are read before the first is acted on: one that fails again becomes a new letter, and is left alone.
  const letters =
    which === "--all" ? await Array.fromAsync(listDeadLetters(bus)) : [await one(bus, which)];
  for (const letter of letters) {
    await act(bus, letter);
    console.log(`${letter.sequence}  ${letter.address}  ${letter.message}  ${done}`);
  }
  if (letters.length === 0) console.log("No dead letters");
}

async function one(bus: Bus, which: string | undefined): Promise<DeadLetter> {
  const sequence = Number(which);
  if (!Number.isSafeInteger(sequence) || sequence < 1) {
    throw new UsageError(`Cannot find dead letter: expected its number, found "${which}"`);
  }
  const letter = await findDeadLetter(bus, sequence);
  if (!letter) throw new Error(`Cannot find dead letter ${sequence}: there is none of that number`);
  return letter;
}
