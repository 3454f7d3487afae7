/** `trunkline admin dead`: lists, shows, retries and drops dead letters: messages that no actor could handle. */
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import {
  type DeadLetter,
  dropDeadLetter,
  findDeadLetter,
  listDeadLetters,
  retryDeadLetter,
} from "../../actors/runtime/mail/dead-letters.ts";
import { ActorError } from "../../schemas/errors.ts";
import { printable, printableLines } from "./printable.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

const ERROR_CHARACTERS = 80;

export async function adminDead(
  [verb, which, ...more]: string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const needed = { list: 0, show: 1, retry: 1, drop: 1 }[verb ?? ""];
  if (needed === undefined) {
    const [command, after] = verb === undefined ? ["dead", " after it"] : [`dead ${verb}`, ""];
    throw new UsageError(
      `Cannot run "admin ${command}": expected list, show, retry or drop${after}`,
    );
  }
  if (more.length > 0 || (needed === 0) !== (which === undefined)) {
    const expected =
      needed === 0 ? "nothing" : verb === "show" ? "one number" : "one number, or --all,";
    throw new UsageError(`Cannot run "admin dead ${verb}": expected ${expected} after it`);
  }
  // The number of the letter is checked before the connection to the bus is made, so a mistyped number fails
  // immediately.
  const sequence = needed === 0 || (which === "--all" && verb !== "show") ? "all" : numberOf(which);
  await withBus(environment, async (bus) => {
    const letters = sequence === "all" ? listDeadLetters(bus) : [await one(bus, sequence)];
    if (verb === "list") await list(letters);
    else if (verb === "show") await show(letters);
    else if (verb === "retry") await each(bus, letters, "sent again", retryDeadLetter);
    else await each(bus, letters, "dropped", dropDeadLetter);
  });
}

type Letters = AsyncIterable<DeadLetter> | Iterable<DeadLetter>;

async function show(letters: Letters): Promise<void> {
  for await (const letter of letters) {
    const buriedAt = new Date(letter.buriedAt).toISOString();
    console.log(printableLines(JSON.stringify({ ...letter, buriedAt }, undefined, 2)));
  }
}

async function list(letters: Letters): Promise<void> {
  let count = 0;
  for await (const letter of letters) {
    const { sequence, address, message, tries, buriedAt, error } = letter;
    const [line = ""] = error.split("\n");
    const columns = [
      sequence,
      new Date(buriedAt).toISOString(),
      address,
      message,
      tries === 1 ? "1 try" : `${tries} tries`,
    ];
    console.log(printable([...columns, line.slice(0, ERROR_CHARACTERS)].join("  ")));
    count += 1;
  }
  if (count === 0) console.log("No dead letters");
}

async function each(
  bus: Bus,
  letters: Letters,
  done: string,
  act: (bus: Bus, letter: DeadLetter) => Promise<void>,
): Promise<void> {
  let count = 0;
  for await (const letter of letters) {
    const outcome = await act(bus, letter).then(
      () => done,
      (error: unknown) => {
        // With several letters, a letter that another operator is handling is skipped. With one letter, this is an
        // error.
        if (Array.isArray(letters) || !isTaken(error)) throw error;
        return "left to another operator";
      },
    );
    console.log(printable(`${letter.sequence}  ${letter.address}  ${letter.message}  ${outcome}`));
    count += 1;
  }
  if (count === 0) console.log("No dead letters");
}

const isTaken = (error: unknown) =>
  error instanceof ActorError && ["conflict", "not_found"].includes(error.code);

function numberOf(which: string | undefined): number {
  const sequence = Number(which);
  if (/^\d+$/.test(which ?? "") && Number.isSafeInteger(sequence) && sequence > 0) return sequence;
  throw new UsageError(`Cannot find dead letter: expected its number, found "${which}"`);
}

async function one(bus: Bus, sequence: number): Promise<DeadLetter> {
  const letter = await findDeadLetter(bus, sequence);
  if (!letter) throw new Error(`Cannot find dead letter ${sequence}: there is none of that number`);
  return letter;
}
