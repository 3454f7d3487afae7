/** The type of a command for apps, and the parsing of a command's parameters. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { meantName } from "../../schemas/nearest-name.ts";
import { UsageError } from "../admin/usage-error.ts";

export interface Command {
  /** The words after `trunkline`. */
  name: string;
  /** The parameters after the name. */
  usage: string;
  /** The description in the list of all commands. */
  summary: string;
  /** Additional text for the command's own help. */
  help: string;
  run(parameters: string[], environment: NodeJS.ProcessEnv): Promise<void>;
}

/** A valid command failed. Unlike a UsageError, the message is printed without a reference to the help. */
export class CommandFailure extends Error {}

interface ReadParameters {
  values: Record<string, string | boolean | undefined>;
  positionals: string[];
}

/**
 * Parses the parameters of a command. `counts` are the minimum and maximum number of parameters that are not options.
 */
export function readParameters(
  parameters: string[],
  {
    options = {},
    counts = [0, 0],
  }: { options?: ParseArgsOptionsConfig; counts?: [number, number] },
): ReadParameters {
  const [min, max] = counts;
  const { values, positionals } = parsed(parameters, options);
  if (positionals.length < min) throw new UsageError("Cannot run command: a parameter is missing");
  if (positionals.length > max)
    throw new UsageError(`Cannot run command: unknown parameter "${positionals[max]}"`);
  return { values: values as ReadParameters["values"], positionals };
}

function parsed(parameters: string[], options: ParseArgsOptionsConfig) {
  const read = parseArgs({
    args: parameters,
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const known = Object.keys(options);
  for (const token of read.tokens) {
    if (token.kind !== "option") continue;
    const option = options[token.name];
    if (option === undefined) {
      const meant = meantName(token.name, known);
      const hint = meant === "" ? "" : `; is --${meant} meant?`;
      throw new UsageError(`Cannot run command: unknown option ${token.rawName}${hint}`);
    }
    // A missing value: another option follows directly, or the value is empty.
    if (option.type === "string" && (token.value === undefined || token.value === ""))
      throw new UsageError(`Cannot run command: ${token.rawName} needs a value`);
    if (option.type === "boolean" && token.value !== undefined)
      throw new UsageError(`Cannot run command: ${token.rawName} takes no value`);
  }
  return read;
}

/** The option with the path of the app's configuration file, for every command that reads this file. */
export const CONFIG_OPTION = { config: { type: "string", short: "c" } } as const;
export const CONFIG_HELP = `  --config, -c <file>   another file than trunkline.jsonc in this folder`;
