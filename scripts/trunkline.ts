/** The command-line program: finds the requested command and runs it. */

import { ADMIN_COMMANDS } from "./admin/admin-commands.ts";
import { printableLines } from "./admin/printable.ts";
import { UsageError } from "./admin/usage-error.ts";
import { version } from "./version.ts";

/** Prints the help of `admin`, or only of the `admin` commands that begin with the given words. */
function adminHelp(parameters: readonly string[]): string {
  const typed = parameters.filter((parameter) => !asksForHelp(parameter)).slice(0, 3);
  const meant = typed
    .map((_, index) => `  ${typed.slice(0, typed.length - index).join(" ")} `)
    .map((start) => ADMIN_COMMANDS.filter((line) => line.startsWith(start)))
    .find((lines) => lines.length > 0);
  return `Usage: trunkline admin <command>

For operators, on a machine that reaches the bus (TRUNKLINE_NATS_URL, or the embedded one of TRUNKLINE_DATA):
${(meant ?? ADMIN_COMMANDS).join("\n")}`;
}

const START_HELP = `Usage: trunkline start

Runs the platform until Ctrl-C. Its data is in ./data, or in the folder that TRUNKLINE_DATA names. Before that it brings
what is missing of nats-server, Chromium and git. docs/reference/configuration.md lists all settings.`;

const help = (commands: string) => `Usage: trunkline <command>

  start                           run the platform, with its data in ./data

For apps, in the app's folder:
${commands}

For operators, on a machine that reaches the bus (TRUNKLINE_NATS_URL, or the embedded one of TRUNKLINE_DATA):
${ADMIN_COMMANDS.join("\n")}

  --help                          print this text, or after a command its own help
  --version                       print the version of this program

TRUNKLINE_API_URL, TRUNKLINE_API_TOKEN and TRUNKLINE_ACCOUNT_ID replace a login.
Exit status: 0 success, 1 failure, 2 wrong command or arguments. admin doctor: 0 good, 1 warnings, 2 failures.
`;

const HINT = "trunkline --help lists all commands";

// Exits explicitly, because the open socket of a server that does not answer would keep this process alive.
process.exit(await main(process.argv.slice(2)));

async function main(parameters: string[]): Promise<number> {
  try {
    const [area] = parameters;
    if (area === "--version") console.log(`trunkline ${version()}`);
    else if (area === "start") start(parameters.slice(1));
    else if (area === "admin" && parameters.some(asksForHelp)) console.log(adminHelp(parameters));
    else if (area === "admin") return await admin(parameters.slice(1));
    else await forApps(parameters);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) {
      console.error(error instanceof Error ? printableLines(error.message) : error);
      return 1;
    }
    console.error(`${printableLines(error.message)}\n${error.hint ?? HINT}`);
    return 2;
  }
}

/**
 * Handles `start` with parameters: prints the help, or throws a UsageError. Without parameters, the shell script
 * `scripts/trunkline` starts the platform itself, and this code does not run.
 */
function start(rest: readonly string[]): void {
  if (rest.some(asksForHelp)) console.log(START_HELP);
  else
    throw new UsageError('Cannot run "start": expected nothing after it; settings are variables');
}

/** Resolves with the exit status, or with nothing after success. */
type AdminCommand = (parameters: string[], environment: NodeJS.ProcessEnv) => Promise<unknown>;

/** Loads the command of each noun. A command loads only its own modules, because most of its time is loading. */
function adminCommands(): Record<string, () => Promise<AdminCommand>> {
  return {
    shards: async () => (await import("./admin/admin-shards.ts")).adminShards,
    tasks: async () => (await import("./admin/admin-tasks.ts")).adminTasks,
    trace: async () => (await import("./admin/admin-trace.ts")).adminTrace,
    dead: async () => (await import("./admin/admin-dead.ts")).adminDead,
    doctor: async () => (await import("./admin/admin-doctor.ts")).adminDoctor,
    backup: async () => (await import("./admin/admin-backup.ts")).adminBackup,
    restore: async () => (await import("./admin/admin-restore.ts")).adminRestore,
    "bus-credentials": async () =>
      (await import("./admin/admin-bus-credentials.ts")).adminBusCredentials,
    streams: async () => (await import("./admin/admin-streams.ts")).adminStreams,
    secrets: async () => (await import("./admin/admin-secrets.ts")).adminSecrets,
  };
}

/** Returns the exit status. */
async function admin([noun, ...rest]: string[]): Promise<number> {
  const commands = adminCommands();
  if (noun === undefined) {
    const nouns = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(
      Object.keys(commands),
    );
    throw new UsageError(`Cannot run "admin": expected ${nouns} after it`);
  }
  const load = Object.hasOwn(commands, noun) ? commands[noun] : undefined;
  if (!load) throw new UsageError(`Cannot run "admin ${noun}": no such command`);
  const run = await load();
  const status = await run(rest, process.env);
  return typeof status === "number" ? status : 0;
}

/** Runs a command for apps. Its modules are loaded only here, so that operators' commands do not wait for them. */
async function forApps(parameters: string[]): Promise<void> {
  const commands = await import("./cli/commands.ts");
  const { commandList, findCommand, groupHelp, helpOf, unknownCommand } = commands;
  const [area] = parameters;
  const found = findCommand(parameters);
  const beneath = found ? undefined : groupHelp(area);
  if (found?.rest.some(asksForHelp)) console.log(helpOf(found.command));
  else if (beneath !== undefined && parameters.some(asksForHelp)) console.log(beneath);
  else if (area === undefined || area === "help" || (!found && parameters.some(asksForHelp)))
    console.log(help(commandList()).trimEnd());
  else if (!found) throw new UsageError(unknownCommand(parameters));
  else {
    try {
      await found.command.run(found.rest, process.env);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      const hint = `trunkline ${found.command.name} --help explains it`;
      throw new UsageError(error.message, { hint });
    }
  }
}

function asksForHelp(parameter: string): boolean {
  return parameter === "--help" || parameter === "-h";
}
