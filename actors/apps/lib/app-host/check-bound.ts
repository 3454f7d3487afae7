/**
 * Restricts calls of the REST API by app code to the bindings in the app's configuration. The host checks this,
 * because the process is not trusted.
 */
import type { AppConfig } from "../../../../schemas/apps/app-config.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { folded } from "../../../../schemas/repositories/git-names.ts";

/** Throws ActorError `forbidden` if the app has no such binding. */
export function checkBound(
  config: Pick<AppConfig, "artifacts" | "browser">,
  permission: "artifacts" | "browser",
  namespace: string | undefined,
): void {
  if (permission === "browser" ? config.browser !== undefined : isBound(config, namespace)) return;
  const bound = config.artifacts.map((one) => `"${one.namespace}"`).join(", ");
  const missing =
    permission === "browser" || bound === ""
      ? `the app has no ${permission} binding`
      : `trunkline.jsonc binds the namespaces ${bound}, and not "${namespace ?? ""}"`;
  throw new ActorError("forbidden", `Cannot call the API: ${missing}`);
}

function isBound({ artifacts }: Pick<AppConfig, "artifacts">, namespace = ""): boolean {
  return artifacts.some((one) => folded(one.namespace) === folded(namespace));
}
