/**
 * `trunkline secret`: manages values that only the app's code can read. A value comes from standard input or a
 * prompt, never from a parameter, because other users can see parameters.
 */
import { BindingName } from "../../schemas/apps/app-names.ts";
import { NamedSecret, WireAppSecret } from "../../schemas/apps/http/apps.ts";
import { age } from "../admin/age.ts";
import { table } from "../admin/table.ts";
import { UsageError } from "../admin/usage-error.ts";
import { APP_HELP, APP_OPTION, appNameOf } from "./app-name.ts";
import { type Command, CommandFailure, readParameters } from "./command.ts";
import { openPlatform } from "./platform.ts";
import { readSecret } from "./read-secret.ts";

export const secretPut: Command = {
  name: "secret put",
  usage: "<name> [--app <name>]",
  summary: "store a secret of the app; the value comes from stdin or a prompt",
  help: `  openssl rand -hex 32 | trunkline secret put WEBHOOK_SECRET

A line break after the value is not part of it. The app gets the secret at its next start.

${APP_HELP}`,
  async run(parameters, environment) {
    const { values, positionals } = readParameters(parameters, {
      options: APP_OPTION,
      counts: [1, 2],
    });
    const [name = "", value] = positionals;
    if (value !== undefined) {
      throw new UsageError(
        "Cannot take a secret's value as a parameter, where others see it: give it by stdin, or leave it out and be asked",
      );
    }
    checkName(name);
    const app = appNameOf(values);
    const platform = await openPlatform(environment);
    const secret = await readSecret(`Value of ${name} (it is not shown): `);
    if (secret === "") throw new CommandFailure(`Cannot put secret ${name}: its value is empty`);
    await platform.ask(`/apps/${app}/secrets/${name}`, NamedSecret, {
      method: "PUT",
      json: { value: secret },
    });
    console.log(`Put secret ${name} of ${app}`);
  },
};

export const secretList: Command = {
  name: "secret list",
  usage: "[--app <name>]",
  summary: "list the names of the app's secrets; values are never shown",
  help: APP_HELP,
  async run(parameters, environment) {
    const { values } = readParameters(parameters, { options: APP_OPTION });
    const app = appNameOf(values);
    const platform = await openPlatform(environment);
    const secrets = await platform.ask(`/apps/${app}/secrets`, WireAppSecret.array());
    const rows = secrets.map(({ name, modified_on }) => [
      name,
      `${age(new Date(modified_on))} ago`,
    ]);
    console.log(rows.length === 0 ? `${app} has no secrets` : table(["NAME", "PUT"], rows));
  },
};

export const secretDelete: Command = {
  name: "secret delete",
  usage: "<name> [--app <name>]",
  summary: "delete a secret of the app",
  help: APP_HELP,
  async run(parameters, environment) {
    const { values, positionals } = readParameters(parameters, {
      options: APP_OPTION,
      counts: [1, 1],
    });
    const [name = ""] = positionals;
    checkName(name);
    const app = appNameOf(values);
    const platform = await openPlatform(environment);
    await platform.ask(`/apps/${app}/secrets/${name}`, NamedSecret, { method: "DELETE" });
    console.log(`Deleted secret ${name} of ${app}`);
  },
};

function checkName(name: string): void {
  const read = BindingName.safeParse(name);
  if (!read.success)
    throw new UsageError(
      `Cannot use "${name}" as the name of a secret: ${read.error.issues[0]?.message}`,
    );
}
