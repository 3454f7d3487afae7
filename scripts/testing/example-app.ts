/** Deploys an example app with its secrets on a test's instance. The app is bundled as by the command line. */
import { join } from "node:path";
import { stop } from "esbuild";
import { readAppConfig } from "../cli/app-config-file.ts";
import { bundleApp } from "../cli/bundle-app.ts";
import { REPOSITORY } from "../tools.ts";
import type { AppPlatform } from "./app-platform.ts";

export async function deployExample(
  platform: AppPlatform,
  name: string,
  secrets: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const [secret, value] of Object.entries(secrets)) {
    await platform.rest("PUT", `/apps/${name}/secrets/${secret}`, { value });
  }
  const file = readAppConfig(join(REPOSITORY, "deploy/apps/examples", name, "trunkline.jsonc"));
  const bundle = await bundleApp(file);
  await stop();
  const { body } = await platform.deploy(name, bundle, file.config);
  if (!body.success) throw new Error(`Cannot deploy ${name}: ${JSON.stringify(body.errors)}`);
}
