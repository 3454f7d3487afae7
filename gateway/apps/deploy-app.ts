/**
 * Deploys a version of an app: stores it, starts it to check that it works, and only then makes it the serving
 * version.
 */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { appEntry } from "../../schemas/apps/agent.ts";
import { type AppOverview, app } from "../../schemas/apps/app.ts";
import { appList } from "../../schemas/apps/app-list.ts";
import { appKey } from "../../schemas/apps/app-names.ts";
import type { DeployApp } from "../../schemas/apps/http/apps.ts";
import { APP_START_MS_MAX } from "../../schemas/apps/limits.ts";
import { ActorError, isRefusal } from "../../schemas/errors.ts";
import type { Caller } from "../http/caller.ts";
import type { AppPorts } from "./app-ports.ts";
import { checkAppRoom, newBundleName, type RoomBlobs } from "./app-room.ts";
import { checkMayBind } from "./binding-permissions.ts";

/** Time limit of the check. It includes the start, the transfer of the bundle to the host, and the answer. */
const CHECK_MS_MAX = APP_START_MS_MAX + 10_000;

interface DeployParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "remove"> & RoomBlobs;
  /** The ports of apps; absent if apps have no ports. */
  ports?: Pick<AppPorts, "open" | "release"> | undefined;
}

type Deployer = Pick<Caller, "accountId" | "permissions">;

/** Deploys an app. Throws `app_broken` if it does not start; then the previous version continues to serve. */
export async function deployApp(
  { actors, blobs, ports }: DeployParts,
  { accountId, name, permissions }: Deployer & { name: string },
  { config, bundle }: DeployApp,
): Promise<AppOverview> {
  const key = appKey(accountId, name);
  // These checks come before anything is stored or listed, so that a refused deploy leaves no data.
  if (config.name !== name) {
    const reason = `its configuration is that of "${config.name}"`;
    throw new ActorError("invalid_request", `Cannot deploy app "${name}": ${reason}`);
  }
  checkMayBind(permissions, config);
  const missing = await missingSecrets(actors, key, config.secrets.required);
  if (missing.length > 0) {
    const text = `Cannot deploy app "${name}": it has no secret ${missing.join(", ")}; set it first with \`trunkline secret put\``;
    throw new ActorError("conflict", text);
  }
  const bytes = Buffer.from(bundle);
  const deployed = { accountId, name };
  await checkAppRoom(blobs, deployed, bytes.length);
  const of = { accountId, app: name };
  const hasNewPort = await ports?.open(of);
  await actors.call(appList, accountId, "admit", { name }).catch(async (error: unknown) => {
    if (hasNewPort && isRefusal(error)) await ports?.release(of);
    throw error;
  });
  const blob = newBundleName(deployed, bytes.length);
  await blobs.put(blob, bytes);
  // Checks again, because other deploys of the account may have stored their bundles since the first check.
  await checkAppRoom(blobs, deployed, 0).catch(async (error: unknown) => {
    // No version names the bundle yet.
    await blobs.remove(blob).catch(() => {});
    throw error;
  });
  const staged = { config, bundle: blob, bundleBytes: bytes.length };
  const { version } = await actors.call(app, key, "stage", staged).catch(async (error: unknown) => {
    if (isRefusal(error)) await blobs.remove(blob).catch(() => {});
    throw error;
  });
  const reason = await check(actors, key, version, config);
  if (reason !== undefined) {
    await actors.call(app, key, "reject", { version, reason });
    throw new ActorError("app_broken", `Cannot deploy app "${name}": ${reason}`);
  }
  return actors.call(app, key, "activate", { version });
}

/**
 * Returns why the app does not start, or undefined if it does. A busy or unreachable host proves nothing about the
 * app, so its error is thrown.
 */
async function check(
  actors: ActorClient,
  key: string,
  version: number,
  { agents }: DeployApp["config"],
): Promise<string | undefined> {
  try {
    const options = { deadlineMs: CHECK_MS_MAX };
    const { classes, hasDefault } = await actors.call(appEntry, key, "check", { version }, options);
    if (hasDefault === false) {
      return "its module has no default export: expected `export default { fetch(request, env) {…} }`";
    }
    const lacking = agents.filter(({ class_name: name }) => !classes.includes(name));
    if (lacking.length === 0) return undefined;
    const names = lacking.map(({ class_name: name }) => `"${name}"`).join(", ");
    return `its bundle exports no class ${names} that extends Agent`;
  } catch (error) {
    if (error instanceof ActorError && error.code === "app_broken") return error.message;
    throw error;
  }
}

async function missingSecrets(
  actors: ActorClient,
  key: string,
  required: readonly string[],
): Promise<string[]> {
  if (required.length === 0) return [];
  const known = await actors.call(app, key, "get", {}).catch((error: unknown) => {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  });
  const names = new Set(known?.secrets.map(({ name }) => name));
  return required.filter((name) => !names.has(name));
}
