/**
 * Apps of an account: they are deployed, shown, rolled back and deleted. Their secrets can be set, but never read
 * back.
 */

import type { z } from "zod";
import type { SecretBox } from "../../../actors/apps/lib/app-secrets/secret-box.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import type { StoredLine, StoredLines } from "../../../actors/runtime/store/stored-lines.ts";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import { type AppOverview, type AppVersion, app } from "../../../schemas/apps/app.ts";
import { type AppEntry, appList } from "../../../schemas/apps/app-list.ts";
import { AppLogLine } from "../../../schemas/apps/app-log.ts";
import { appKey, readAgentKey } from "../../../schemas/apps/app-names.ts";
import { type AgentLimits, appUsage } from "../../../schemas/apps/app-usage.ts";
import {
  AppLogsQuery,
  AppPath,
  AppSecretPath,
  DeletedApp,
  DeployApp,
  NamedSecret,
  PutAppSecret,
  RollBackApp,
  WireAgentUsage,
  WireApp,
  WireAppEntry,
  WireAppLogLine,
  WireAppSecret,
} from "../../../schemas/apps/http/apps.ts";
import { APP_BUNDLE_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { Listing } from "../../../schemas/http/listing.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { appLogSubject } from "../../../schemas/subjects.ts";
import { pageOf } from "../../http/listing.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import { type AppAddresses, machineUrlOf, originOf } from "../app-addresses.ts";
import type { RoomBlobs } from "../app-room.ts";
import { deployApp } from "../deploy-app.ts";

export const APPS_TAG: Tag = {
  name: "Apps",
  description: "Deployed apps, their secrets and logs",
};

/** Limit of a deployment as JSON. Escapes in JSON may double the size of a bundle. */
const APP_DEPLOY_BYTES_MAX = 2 * APP_BUNDLE_BYTES_MAX + 1_000_000;

const APPS = "/accounts/{account_id}/apps";
const APP = `${APPS}/{app}`;
/** Default number of lines in an answer. */
const LINES_SHOWN = 100;
const SECRETS = `${APP}/secrets`;

interface AppRouteParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "remove"> & RoomBlobs;
  secrets: Pick<SecretBox, "seal">;
  addresses: AppAddresses;
  /** The log lines of apps. */
  lines: StoredLines;
  /** Limits of the agents of one account. */
  limits: AgentLimits;
}

type OfApp<B = unknown> = RouteRequest<z.output<typeof AppPath>, unknown, B>;
type OfSecret<B = unknown> = RouteRequest<z.output<typeof AppSecretPath>, unknown, B>;

const READS = { tag: APPS_TAG, permissions: ["apps.read"] } as const;
const WRITES = { tag: APPS_TAG, permissions: ["apps.write"] } as const;

const LIST_APPS = {
  ...READS,
  method: "get",
  path: APPS,
  id: "listApps",
  summary: "List the account's apps",
  parameters: AccountPath,
  query: Listing,
  answer: { result: WireAppEntry.array(), paged: "numbers" },
} as const;

const GET_AGENT_USAGE = {
  ...READS,
  method: "get",
  path: "/accounts/{account_id}/agents/usage",
  id: "getAgentUsage",
  summary: "Count the account's agents and the bytes they store, in total and by app",
  parameters: AccountPath,
  query: nothing,
  answer: { result: WireAgentUsage },
} as const;

const DEPLOY_APP = {
  ...WRITES,
  method: "put",
  path: APP,
  id: "deployApp",
  summary:
    "Deploy a version: it is started once as a trial, and serves requests if the trial succeeds",
  parameters: AppPath,
  query: nothing,
  body: { schema: DeployApp, bytesMax: APP_DEPLOY_BYTES_MAX },
  refusals: ["conflict", "limit_reached", "app_broken", "storage_full"],
  answer: { result: WireApp },
} as const;

const GET_APP = {
  ...READS,
  method: "get",
  path: APP,
  id: "getApp",
  summary: "Get an app with its versions and the names of its secrets",
  parameters: AppPath,
  query: nothing,
  answer: { result: WireApp },
} as const;

const DELETE_APP = {
  ...WRITES,
  method: "delete",
  path: APP,
  id: "deleteApp",
  summary: "Delete an app with its secrets, logs and agents; this cannot be undone",
  parameters: AppPath,
  query: nothing,
  answer: { result: DeletedApp },
} as const;

const ROLL_BACK_APP = {
  ...WRITES,
  method: "post",
  path: `${APP}/rollback`,
  id: "rollBackApp",
  summary: "Roll back to an earlier version",
  parameters: AppPath,
  query: nothing,
  body: { schema: RollBackApp, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict"],
  answer: { result: WireApp },
} as const;

const GET_APP_LOGS = {
  ...READS,
  method: "get",
  path: `${APP}/logs`,
  id: "getAppLogs",
  summary: "Read an app's log, oldest first, and follow new lines",
  parameters: AppPath,
  query: AppLogsQuery,
  answer: { result: WireAppLogLine.array() },
} as const;

const LIST_APP_SECRETS = {
  ...READS,
  method: "get",
  path: SECRETS,
  id: "listAppSecrets",
  summary: "List the names of an app's secrets, and when each was set",
  parameters: AppPath,
  query: nothing,
  answer: { result: WireAppSecret.array() },
} as const;

const PUT_APP_SECRET = {
  ...WRITES,
  method: "put",
  path: `${SECRETS}/{name}`,
  id: "putAppSecret",
  summary:
    "Set a secret, also for an app that is not deployed yet; the app gets it at its next start",
  parameters: AppSecretPath,
  query: nothing,
  body: { schema: PutAppSecret, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict", "limit_reached"],
  answer: { result: NamedSecret },
} as const;

const DELETE_APP_SECRET = {
  ...WRITES,
  method: "delete",
  path: `${SECRETS}/{name}`,
  id: "deleteAppSecret",
  summary: "Delete a secret of an app",
  parameters: AppSecretPath,
  query: nothing,
  answer: { result: NamedSecret },
} as const;

/** The REST routes of apps and their secrets. */
export function appRoutes(parts: AppRouteParts): Route[] {
  return [
    defineRoute({ ...LIST_APPS, handle: listApps(parts) }),
    defineRoute({ ...GET_AGENT_USAGE, handle: getUsage(parts) }),
    defineRoute({ ...DEPLOY_APP, handle: deploy(parts) }),
    defineRoute({ ...GET_APP, handle: getApp(parts) }),
    defineRoute({ ...DELETE_APP, handle: deleteApp(parts) }),
    defineRoute({ ...ROLL_BACK_APP, handle: rollBack(parts) }),
    defineRoute({ ...GET_APP_LOGS, handle: getLogs(parts) }),
    defineRoute({ ...LIST_APP_SECRETS, handle: listSecrets(parts) }),
    defineRoute({ ...PUT_APP_SECRET, handle: putSecret(parts) }),
    defineRoute({ ...DELETE_APP_SECRET, handle: deleteSecret(parts) }),
  ];
}

function listApps({ actors, addresses }: AppRouteParts) {
  return async ({ caller, query }: RouteRequest<unknown, Listing>) => {
    const { apps } = await actors.call(appList, caller.accountId, "list", {});
    const entries = apps.map((entry) =>
      wireEntry(entry, { addresses, accountId: caller.accountId }),
    );
    return pageOf(entries, query);
  };
}

function getUsage({ actors, limits }: AppRouteParts) {
  return async ({ caller }: RouteRequest) => {
    const { agents, bytes, apps } = await actors.call(appUsage, caller.accountId, "get", {});
    return {
      result: {
        agents,
        agents_limit: limits.agents,
        stored_bytes: bytes,
        stored_bytes_limit: limits.bytes === 0 ? null : limits.bytes,
        apps: apps.map((one) => ({
          name: one.name,
          agents: one.agents,
          stored_bytes: one.bytes,
        })),
      },
    };
  };
}

function deploy({ actors, blobs, addresses }: AppRouteParts) {
  return async ({ caller, parameters, body }: OfApp<DeployApp>) => {
    const { accountId, permissions } = caller;
    const of = { accountId, permissions, name: parameters.app };
    const deployed = await deployApp({ actors, blobs, ports: addresses.ports }, of, body);
    return { result: wireApp(deployed, { addresses, accountId }) };
  };
}

function getApp({ actors, addresses }: AppRouteParts) {
  return async ({ caller: { accountId }, parameters }: OfApp) => {
    const found = await actors.call(app, appKey(accountId, parameters.app), "get", {});
    return { result: wireApp(found, { addresses, accountId }) };
  };
}

function deleteApp({ actors, addresses }: AppRouteParts) {
  return async ({ caller: { accountId }, parameters }: OfApp) => {
    await actors.call(app, appKey(accountId, parameters.app), "delete", {});
    addresses.ports?.close({ accountId, app: parameters.app });
    return { result: { name: parameters.app } };
  };
}

function rollBack({ actors, addresses }: AppRouteParts) {
  return async ({ caller: { accountId }, parameters, body }: OfApp<RollBackApp>) => {
    const served = await actors.call(app, appKey(accountId, parameters.app), "rollBack", body);
    return { result: wireApp(served, { addresses, accountId }) };
  };
}

type LogsRequest = RouteRequest<z.output<typeof AppPath>, z.output<typeof AppLogsQuery>>;

function getLogs({ actors, lines }: AppRouteParts) {
  return async ({ caller: { accountId }, parameters, query, signal }: LogsRequest) => {
    const key = appKey(accountId, parameters.app);
    await actors.call(app, key, "get", {});
    const { limit: count = LINES_SHOWN, after, wait_seconds: waitS = 0 } = query;
    const wanted = { after, count, waitMs: waitS * 1_000, signal };
    return { result: (await lines.read(appLogSubject(key), wanted)).flatMap(wireLines(after)) };
  };
}

function listSecrets({ actors }: AppRouteParts) {
  return async ({ caller: { accountId }, parameters }: OfApp) => {
    const found = await actors.call(app, appKey(accountId, parameters.app), "get", {});
    return { result: found.secrets.map(wireSecret) };
  };
}

function putSecret({ actors, secrets }: AppRouteParts) {
  return async ({ caller: { accountId }, parameters, body }: OfSecret<PutAppSecret>) => {
    const { app: name, name: secret } = parameters;
    const sealed = secrets.seal(body.value, { accountId, app: name, name: secret });
    await actors.call(appList, accountId, "admit", { name });
    await actors.call(app, appKey(accountId, name), "putSecret", { name: secret, sealed });
    return { result: { name: secret } };
  };
}

function deleteSecret({ actors }: AppRouteParts) {
  return async ({ caller: { accountId }, parameters }: OfSecret) => {
    const { app: name, name: secret } = parameters;
    await actors.call(app, appKey(accountId, name), "deleteSecret", { name: secret });
    return { result: { name: secret } };
  };
}

/** The values from which an app's addresses are computed. */
interface AddressParts {
  addresses: AppAddresses;
  accountId: string;
}

function wireApp(shown: AppOverview, parts: AddressParts): z.input<typeof WireApp> {
  const { name, serving, createdAt, updatedAt } = shown;
  const entry = { name, createdAt, updatedAt, ...(serving !== undefined && { serving }) };
  return {
    id: shown.id,
    ...wireEntry(entry, parts),
    config: shown.config ?? null,
    versions: shown.versions.map(wireVersion),
    secrets: shown.secrets.map(wireSecret),
  };
}

function wireEntry(
  { name, serving, createdAt, updatedAt }: AppEntry,
  { addresses, accountId }: AddressParts,
): z.input<typeof WireAppEntry> {
  const of = { accountId, app: name };
  return {
    name,
    serving_version: serving ?? null,
    url: originOf(addresses, of),
    machine_url: machineUrlOf(addresses, of),
    created_on: timeOf(createdAt),
    modified_on: timeOf(updatedAt),
  };
}

const wireSecret = ({ name, updatedAt }: AppOverview["secrets"][number]) => ({
  name,
  modified_on: timeOf(updatedAt),
});

const wireVersion = ({ number, status, reason, bundleBytes, createdAt }: AppVersion) => ({
  number,
  status,
  ...(reason !== undefined && { reason }),
  bundle_bytes: bundleBytes,
  created_on: timeOf(createdAt),
});

/** Returns a line, and before it a line that says where older lines were dropped. Its id is the reader's own. */
const wireLines =
  (after = 0) =>
  (line: StoredLine): z.input<typeof WireAppLogLine>[] => {
    const wired = wireLine(line);
    if (!line.isAfterGap) return [wired];
    const text = "Lines may be missing here: the oldest lines of the account were dropped";
    return [{ ...wired, id: after, level: "warn", text, agent: null }, wired];
  };

function wireLine({ sequence, text }: StoredLine): z.input<typeof WireAppLogLine> {
  const line = AppLogLine.parse(JSON.parse(text));
  const of = line.agent === undefined ? undefined : readAgentKey(line.agent);
  return {
    id: sequence,
    time: timeOf(line.at),
    level: line.level,
    text: line.text,
    version: line.version,
    agent: of ? { class_name: of.className, name: of.name } : null,
  };
}

const timeOf = (at: number) => new Date(at).toISOString();
