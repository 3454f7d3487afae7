/** Determines the app of a command: the app named as a parameter, or the app of the present folder. */
import { AppName } from "../../schemas/apps/app-names.ts";
import { UsageError } from "../admin/usage-error.ts";
import { readAppName } from "./app-config-file.ts";
import { CONFIG_HELP, CONFIG_OPTION } from "./command.ts";

export const APP_OPTION = { ...CONFIG_OPTION, app: { type: "string", short: "a" } } as const;
export const APP_HELP = `  --app, -a <name>      the app; by default the one in this folder's trunkline.jsonc
${CONFIG_HELP}`;

export function appNameOf(values: Record<string, string | boolean | undefined>): string {
  if (values.app === undefined) return readAppName(values.config as string | undefined);
  const read = AppName.safeParse(values.app);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UsageError(`Cannot use "${values.app}" as the name of an app: ${issue?.message}`);
}
