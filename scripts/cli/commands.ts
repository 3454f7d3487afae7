/** The list of all commands for apps, and the texts of their help. */
import { meantName } from "../../schemas/nearest-name.ts";
import type { Command } from "./command.ts";
import { deleteApp } from "./delete.ts";
import { deliveriesList, deliveriesReplay, deliveriesShow } from "./deliveries.ts";
import { deploy } from "./deploy.ts";
import { dev } from "./dev.ts";
import { login } from "./login.ts";
import { logout } from "./logout.ts";
import { secretDelete, secretList, secretPut } from "./secret.ts";
import { tail } from "./tail.ts";
import { types } from "./types.ts";
import { rollback, versions } from "./versions.ts";
import { whoami } from "./whoami.ts";

export const COMMANDS: readonly Command[] = [
  login,
  logout,
  whoami,
  dev,
  deploy,
  types,
  tail,
  versions,
  rollback,
  secretPut,
  secretList,
  secretDelete,
  deliveriesList,
  deliveriesShow,
  deliveriesReplay,
  deleteApp,
];

const INDENT = 2;
const NAME_WIDTH = 30;

/** Returns the list of commands for the help, one line per command. */
export function commandList(commands: readonly Command[] = COMMANDS): string {
  return commands
    .map(({ name, summary }) => `${" ".repeat(INDENT)}${name.padEnd(NAME_WIDTH)}  ${summary}`)
    .join("\n");
}

/** Returns the help of the two-word commands that begin with the word `first`. Returns undefined if none does. */
export function groupHelp(first = ""): string | undefined {
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${first} `));
  if (group.length === 0) return undefined;
  return `Usage: trunkline ${first} <command>\n\n${commandList(group)}`;
}

/** Returns the command, and the parameters after the command's name. */
export function findCommand(
  parameters: readonly string[],
): { command: Command; rest: string[] } | undefined {
  for (const command of COMMANDS) {
    const words = command.name.split(" ");
    if (words.every((word, index) => parameters[index] === word)) {
      return { command, rest: parameters.slice(words.length) };
    }
  }
  return undefined;
}

/** Returns the error about an unknown command. */
export function unknownCommand([area = "", noun]: readonly string[]): string {
  const typed = noun === undefined ? area : `${area} ${noun}`;
  const seconds = secondWords(area);
  if (seconds.length > 0) {
    return `Cannot run "${typed}": expected ${seconds.join(", ")} after ${area}`;
  }
  const firsts = COMMANDS.map(({ name }) => name.split(" ")[0] ?? "");
  const meant = meantName(area, firsts);
  return `Cannot run "${typed}": no such command${meant === "" ? "" : `; is ${meant} meant?`}`;
}

/** Returns the second words of the two-word commands that begin with `first`. */
function secondWords(first: string): string[] {
  return COMMANDS.flatMap(({ name }) => {
    const [start, second] = name.split(" ");
    return start === first && second !== undefined ? [second] : [];
  });
}

export function helpOf({ name, usage, summary, help }: Command): string {
  const sentence = `${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.`;
  return `Usage: trunkline ${[name, usage].filter(Boolean).join(" ")}\n\n${sentence}\n\n${help}`;
}
