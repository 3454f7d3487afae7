/** `trunkline deploy`: bundles an app, uploads the bundle, and makes it the version that serves. */
import type { z } from "zod";
import { WireApp } from "../../schemas/apps/http/apps.ts";
import { type AppConfigFile, readAppConfig } from "./app-config-file.ts";
import { bundleApp, codeOf } from "./bundle-app.ts";
import { CONFIG_HELP, CONFIG_OPTION, type Command, readParameters } from "./command.ts";
import { openPlatform, type Platform } from "./platform.ts";

export const deploy: Command = {
  name: "deploy",
  usage: "[--config <file>] [--dry-run]",
  summary: "bundle the app of this folder, upload it, and serve it",
  help: `Reads trunkline.jsonc, bundles "main" with everything that it imports, and uploads both. The platform starts the new
version once. If it starts, it serves; otherwise the previous version continues.

${CONFIG_HELP}
  --dry-run             only bundle the app and print its size`,
  async run(parameters, environment) {
    const { values } = readParameters(parameters, {
      options: { ...CONFIG_OPTION, "dry-run": { type: "boolean" } },
    });
    const file = readAppConfig(values.config as string | undefined);
    warnOfFuture(file);
    const bundle = await bundleApp(file);
    const size = `${Math.ceil(Buffer.byteLength(codeOf(bundle)) / 1_000)} kB`;
    if (values["dry-run"] === true) {
      console.log(`${file.config.name}: ${size}; nothing was deployed`);
      return;
    }
    const platform = await openPlatform(environment);
    const app = await putApp(platform, file, bundle);
    console.log(
      [
        `Deployed ${app.name}, version ${app.serving_version} (${size})`,
        `For people    ${app.url}`,
        `For machines  ${app.machine_url}`,
      ].join("\n"),
    );
  },
};

export type App = z.output<typeof WireApp>;

export function putApp(
  platform: Platform,
  { config }: AppConfigFile,
  bundle: string,
): Promise<App> {
  return platform.ask(`/apps/${config.name}`, WireApp, { method: "PUT", json: { config, bundle } });
}

export function warnOfFuture({ config, path }: AppConfigFile): void {
  const { compatibility_date: date } = config;
  const today = new Date().toISOString().slice(0, 10);
  if (date > today) console.error(`${path}: warning: compatibility_date ${date} is in the future`);
}
