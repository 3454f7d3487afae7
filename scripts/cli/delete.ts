/** `trunkline delete`: deletes an app and all of its data. This cannot be undone. */
import { createInterface } from "node:readline/promises";
import { DeletedApp } from "../../schemas/apps/http/apps.ts";
import { UsageError } from "../admin/usage-error.ts";
import { APP_HELP, APP_OPTION, appNameOf } from "./app-name.ts";
import { type Command, CommandFailure, readParameters } from "./command.ts";
import { openPlatform } from "./platform.ts";

export const deleteApp: Command = {
  name: "delete",
  usage: "[--app <name>] [--force]",
  summary: "delete the app with its secrets, logs and agents for good",
  help: `Asks for the app's name first.

${APP_HELP}
  --force               do not ask`,
  async run(parameters, environment) {
    const { values } = readParameters(parameters, {
      options: { ...APP_OPTION, force: { type: "boolean" } },
    });
    const name = appNameOf(values);
    const platform = await openPlatform(environment);
    if (values.force !== true) await confirm(name);
    await platform.ask(`/apps/${name}`, DeletedApp, { method: "DELETE" });
    console.log(`Deleted ${name}`);
  },
};

async function confirm(name: string): Promise<void> {
  if (process.stdin.isTTY !== true) {
    throw new UsageError(
      `Cannot ask for confirmation: stdin is not a terminal. Use --force to delete ${name}`,
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const typed = await terminal.question(
    `This deletes ${name} with its secrets, logs and agents, for good. Type its name to go on: `,
  );
  terminal.close();
  if (typed.trim() !== name) throw new CommandFailure("Nothing was deleted");
}
