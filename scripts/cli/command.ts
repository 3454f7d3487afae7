/** The shape of a command of the command line for apps, and the reading of its parameters. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { meantName } from "../../schemas/nearest-name.ts";
import { UsageError } from "../admin/usage-error.ts";

export interface Command {
  /** The words after `trunkline`. */
  name: string;
  /** The parameters after the name. */
  usage: string;
  /** In the list of all commands. */
  summary: string;
  /** Additional text for the command's own help. */
  help: string;
  run(parameters: string[], environment: NodeJS.ProcessEnv): Promise<void>;
}

/** The command was understood and failed. Its message gets no hint to the help. */
export class CommandFailure extends Error {}

interface ReadParameters {
  values: Record<string, string | boolean | undefined>;
  positionals: string[];
}

/** `counts`: how many parameters there may be besides options. */
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
    // An option that is followed by another has lost its value.
    if (option.type === "string" && (token.value === undefined || token.value === ""))
      throw new UsageError(`Cannot run command: ${token.rawName} needs a value`);
    if (option.type === "boolean" && token.value !== undefined)
      throw new UsageError(`Cannot run command: ${token.rawName} takes no value`);
  }
  return read;
}

/** The option that names the app's configuration, for every command that needs one. */
export const CONFIG_OPTION = { config: { type: "string", short: "c" } } as const;
export const CONFIG_HELP = `  --config, -c <file>   another file than trunkline.jsonc in this folder`;
