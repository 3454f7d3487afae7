/** `trunkline versions` lists the deployed versions. `trunkline rollback` makes an earlier version serve again. */
import { WireApp } from "../../schemas/apps/http/apps.ts";
import { age } from "../admin/age.ts";
import { table } from "../admin/table.ts";
import { UsageError } from "../admin/usage-error.ts";
import { APP_HELP, APP_OPTION, appNameOf } from "./app-name.ts";
import { type Command, readParameters } from "./command.ts";
import { openPlatform } from "./platform.ts";

export const versions: Command = {
  name: "versions",
  usage: "[--app <name>]",
  summary: "list the app's versions, and show which one serves",
  help: APP_HELP,
  async run(parameters, environment) {
    const { values } = readParameters(parameters, { options: APP_OPTION });
    const name = appNameOf(values);
    const platform = await openPlatform(environment);
    const app = await platform.ask(`/apps/${name}`, WireApp);
    const rows = app.versions.map(({ number, status, reason, bundle_bytes, created_on }) => [
      number,
      number === app.serving_version ? "serving" : status,
      `${Math.ceil(bundle_bytes / 1_000)} kB`,
      `${age(new Date(created_on))} ago`,
      reason ?? "",
    ]);
    console.log(table(["VERSION", "STATUS", "SIZE", "DEPLOYED", "WHY NOT"], rows));
  },
};

export const rollback: Command = {
  name: "rollback",
  usage: "[<version>] [--app <name>]",
  summary: "serve an earlier version again; by default the previous one",
  help: `Secrets and the data of agents stay as they are.

${APP_HELP}`,
  async run(parameters, environment) {
    const { values, positionals } = readParameters(parameters, {
      options: APP_OPTION,
      counts: [0, 1],
    });
    const [version] = positionals;
    if (version !== undefined && !/^[1-9]\d{0,8}$/.test(version)) {
      throw new UsageError(`Cannot roll back to "${version}": expected the number of a version`);
    }
    const name = appNameOf(values);
    const platform = await openPlatform(environment);
    const json = version === undefined ? {} : { version: Number(version) };
    const app = await platform.ask(`/apps/${name}/rollback`, WireApp, { method: "POST", json });
    console.log(`${name} serves version ${app.serving_version}`);
  },
};
