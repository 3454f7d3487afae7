/** Computes the values of an app's `env`: its variables and its opened secrets. */
import type { ServingApp } from "../../../../schemas/apps/app.ts";
import { readAppKey } from "../../../../schemas/apps/app-names.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { AppProcessesParts } from "./app-processes-parts.ts";

/** Throws ActorError when a secret cannot be opened; only the operator can fix that. */
export function valuesOf(
  parts: Pick<AppProcessesParts, "logger" | "secrets">,
  key: string,
  { config, secrets }: ServingApp,
): Record<string, unknown> {
  const values: Record<string, unknown> = { ...config.vars };
  for (const { name, sealed } of secrets) {
    try {
      values[name] = parts.secrets.open(sealed, { ...readAppKey(key), name });
    } catch (error) {
      parts.logger.error({ err: error, app: key, secret: name }, "secret not opened");
      throw new ActorError("unavailable", `Cannot start the app: secret "${name}" does not open`);
    }
  }
  return values;
}
