/** Stores an app's versions, the number of the serving version, and the sealed secrets. */
import { type AppVersion, app as contract } from "../../../schemas/apps/app.ts";
import { appList } from "../../../schemas/apps/app-list.ts";
import { readAppKey } from "../../../schemas/apps/app-names.ts";
import { APP_PORTS, appPorts } from "../../../schemas/apps/app-ports.ts";
import { appPurge } from "../../../schemas/apps/app-purge.ts";
import { APP_SECRETS_MAX, APP_VERSIONS_MAX } from "../../../schemas/apps/limits.ts";
import { type DeepReadonly, type Envelope, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { deliveriesOf, followEvents } from "./app-events.ts";
import { AppRow, AppState } from "./app-state.ts";

/** Pause before the deletion of an app's data is tried again after a failure. */
export const APP_PURGE_RETRY_MS = 10 * 60_000;
/**
 * Time after which a deletion without a result counts as lost and is enqueued again. It is longer than a busy lane
 * takes, so that usually only one task of an app exists.
 */
export const APP_PURGE_LOST_MS = 60 * 60_000;

type State = DeepReadonly<AppState>;
type Row = DeepReadonly<AppRow>;
type Rows = ReadonlyMap<string, Row>;
type VersionRow = Extract<Row, { version: unknown }>;
type SecretRow = Extract<Row, { secret: unknown }>;

/**
 * Stored at: `<account>.<app>`
 *
 * State: `{ status?, id?, createdAt?, updatedAt?, next, serving?, revision }`: no status where there is none;
 * `deleting` until all that it kept is gone
 *
 * Row `version.<number>`: `{ version: { number, createdAt, bundle, bundleBytes, status, reason? }, config }`; 20 and
 * the one that serves
 *
 * Row `secret.<name>`: `{ secret: { name, sealed, updatedAt } }`: sealed with a key that is not on the bus
 */
export const appActor = defineActor(contract, {
  state: AppState,
  rows: AppRow,
  initial: { next: 1, revision: 0 },

  handlers: {
    get: (state, _input, { key, rows }) => ({ state, reply: overview(state, rows, key) }),

    getServing(state, _input, { key, rows }) {
      checkThere(state, key);
      if (state.serving === undefined) throw notFound(key, "no version of it serves");
      return { state, reply: serving(state, rows, state.serving, key) };
    },

    getId: (state) => ({
      state,
      reply: state.status === "there" && state.id !== undefined ? { id: state.id } : {},
    }),

    getVersion(state, { version }, { key, rows }) {
      checkThere(state, key);
      return { state, reply: serving(state, rows, version, key) };
    },

    stage(state, { config, bundle, bundleBytes }, { key, now, newId, rows }) {
      if (state.status === "deleting") throw conflict(key, "it is still being deleted");
      const { app } = readAppKey(key);
      if (config.name !== app) {
        const reason = `its configuration is that of "${config.name}"`;
        throw new ActorError("invalid_request", `Cannot deploy app "${app}": ${reason}`);
      }
      const number = state.next;
      const version = { number, createdAt: now, bundle, bundleBytes, status: "checking" as const };
      const next = { ...existing(state, now, newId), next: number + 1 };
      const { removed, bundles } = outdated(next, rows);
      return {
        state: next,
        rows: { [`version.${number}`]: { version, config }, ...removed },
        reply: { version: number },
        send: [...created(state, next, key), ...purgeOf(key, bundles)],
      };
    },

    activate(state, { version: number }, { key, now, rows }) {
      checkThere(state, key);
      const row = versionOf(rows, number, key);
      if (row.version.status === "broken") throw conflict(key, `version ${number} did not start`);
      const ready: VersionRow = { ...row, version: { ...row.version, status: "ready" } };
      const shown = new Map([...rows, [`version.${number}`, ready]]);
      // A later version became ready first, so it keeps serving.
      const isLate = row.version.status === "ready" || number < (state.serving ?? 0);
      const next = isLate ? state : serve(state, number, now);
      return {
        state: next,
        rows: { [`version.${number}`]: ready },
        reply: overview(next, shown, key),
        ...(next !== state && { live: { revision: next.revision } }),
        ...(next !== state && {
          send: [
            changed(next, key, now),
            ...followEvents(key, configOf(rows, state.serving), row.config),
          ],
        }),
      };
    },

    reject(state, { version: number, reason }, { key, rows }) {
      const row = rows.get(`version.${number}`);
      if (!row || !("version" in row) || row.version.status !== "checking") {
        return { state, reply: {} };
      }
      const broken = { ...row, version: { ...row.version, status: "broken" as const, reason } };
      return {
        state,
        rows: { [`version.${number}`]: broken },
        reply: {},
        // A broken version never serves, so its bundle would only take room.
        send: purgeOf(key, [row.version.bundle]),
      };
    },

    rollBack(state, { version }, { key, now, rows }) {
      checkThere(state, key);
      const number = version ?? previousOf(state, rows);
      if (number === undefined) throw conflict(key, "there is no earlier version that was ready");
      const row = versionOf(rows, number, key);
      if (row.version.status !== "ready") throw conflict(key, `version ${number} was never ready`);
      if (number === state.serving) return { state, reply: overview(state, rows, key) };
      const next = serve(state, number, now);
      return {
        state: next,
        reply: overview(next, rows, key),
        live: { revision: next.revision },
        send: [
          changed(next, key, now),
          ...followEvents(key, configOf(rows, state.serving), row.config),
        ],
      };
    },

    putSecret(state, { name, sealed }, { key, now, newId, rows }) {
      // A secret can be set before the first deploy, because the first version may need it.
      if (state.status === "deleting") throw conflict(key, "it is still being deleted");
      const count = secretsOf(rows).filter(({ secret }) => secret.name !== name).length;
      if (count >= APP_SECRETS_MAX) {
        const text = `Cannot keep secret: app "${readAppKey(key).app}" has ${APP_SECRETS_MAX}`;
        throw new ActorError("limit_reached", text);
      }
      const next = { ...existing(state, now, newId), revision: state.revision + 1 };
      return {
        state: next,
        rows: { [`secret.${name}`]: { secret: { name, sealed, updatedAt: now } } },
        reply: {},
        live: { revision: next.revision },
        send: created(state, next, key),
      };
    },

    resealSecret(state, { name, from, to }, { key, rows }) {
      const row = rows.get(`secret.${name}`);
      if (!row || !("secret" in row) || row.secret.sealed !== from) {
        throw conflict(key, `its secret "${name}" was changed meanwhile`);
      }
      // The secret's value is the same. So the revision and the time do not change, and no process restarts.
      const resealed = { secret: { ...row.secret, sealed: to } };
      return { state, rows: { [`secret.${name}`]: resealed }, reply: {} };
    },

    deleteSecret(state, { name }, { key, now, rows }) {
      checkThere(state, key);
      if (!rows.has(`secret.${name}`)) throw notFound(key, `it has no secret "${name}"`);
      const next = { ...state, revision: state.revision + 1, updatedAt: now };
      return {
        state: next,
        rows: { [`secret.${name}`]: null },
        reply: {},
        live: { revision: next.revision },
      };
    },

    delete(state, _input, { key, now, rows }) {
      checkThere(state, key);
      const { serving: _, ...rest } = state;
      const next: State = { ...rest, status: "deleting", revision: state.revision + 1 };
      return {
        state: next,
        reply: {},
        live: { revision: next.revision },
        send: [
          ...followEvents(key, configOf(rows, state.serving)),
          envelope(appPurge, key, "purge", { app: key, id: state.id }),
        ],
        remind: { purgeAgain: now + APP_PURGE_LOST_MS },
      };
    },

    getDeleting: (state) => ({
      state,
      reply: state.status === "deleting" ? { id: state.id } : {},
    }),

    repoHappened(state, { events, numbers = [] }, { key, rows }) {
      // The event may be older than a change of the rules or the deletion of the app. The present rules decide.
      const config = configOf(rows, state.status === "there" ? state.serving : undefined);
      if (!config) return { state };
      const numbered = events.flatMap((event, index) => {
        const number = numbers[index];
        return number === undefined ? [] : [{ number, event }];
      });
      return { state, send: deliveriesOf(key, config, numbered) };
    },

    purgeAgain(state, _input, { key, now }) {
      if (state.status !== "deleting") return { state };
      return {
        state,
        send: [envelope(appPurge, key, "purge", { app: key, id: state.id })],
        remind: { purgeAgain: now + APP_PURGE_LOST_MS },
      };
    },

    purgeFailed(state, { id }, { now }) {
      if (!isDeleting(state, id)) return { state };
      return { state, remind: { purgeAgain: now + APP_PURGE_RETRY_MS } };
    },

    purged(state, { id }, { key, now }) {
      if (!isDeleting(state, id)) return { state };
      // The worker may have removed the data of an earlier app only. A worker that knows the id repeats the deletion.
      if (id === undefined) return { state, remind: { purgeAgain: now + APP_PURGE_RETRY_MS } };
      const { accountId, app } = readAppKey(key);
      return {
        forget: true,
        send: [
          envelope(appList, accountId, "removed", { name: app }),
          envelope(appPorts, APP_PORTS, "released", { accountId, app }),
        ],
      };
    },
  },
});

/** Returns whether this app is being deleted. A report without an id may be about this app or an earlier one. */
const isDeleting = (state: State, id: string | undefined) =>
  state.status === "deleting" && (id === undefined || id === state.id);

const existing = (state: State, now: number, newId: () => string) => ({
  ...state,
  status: "there" as const,
  id: state.id ?? newId(),
  createdAt: state.createdAt ?? now,
  updatedAt: now,
});

function serve(state: State, number: number, now: number): State {
  return { ...state, serving: number, revision: state.revision + 1, updatedAt: now };
}

/** Returns the message that adds a new app to its account's list. */
const created = (before: State, state: State, key: string): Envelope[] =>
  before.status === undefined ? [changed(state, key, state.updatedAt ?? 0)] : [];

function changed({ serving, createdAt }: State, key: string, now: number): Envelope {
  const { accountId, app } = readAppKey(key);
  return envelope(appList, accountId, "changed", {
    ...{ name: app, at: now },
    ...(createdAt !== undefined && { createdAt }),
    ...(serving !== undefined && { serving }),
  });
}

function overview(state: State, rows: Rows, key: string) {
  checkThere(state, key);
  const { id, createdAt, updatedAt, serving } = state;
  const versions = versionsOf(rows);
  const config = versions.find(({ version }) => version.number === serving)?.config;
  return {
    id,
    name: readAppKey(key).app,
    createdAt,
    updatedAt,
    ...(serving !== undefined && { serving }),
    ...(config && { config }),
    versions: versions.map(({ version }) => version),
    secrets: secretsOf(rows).map(({ secret: { name, updatedAt: at } }) => ({
      name,
      updatedAt: at,
    })),
  };
}

function serving(state: State, rows: Rows, number: number, key: string) {
  const { version, config } = versionOf(rows, number, key);
  return {
    version: number,
    bundle: version.bundle,
    config,
    secrets: secretsOf(rows).map(({ secret }) => secret),
    ...(state.id !== undefined && { id: state.id }),
    revision: Math.max(1, state.revision),
  };
}

/** Returns the oldest versions past the limit, to be deleted. The serving version is never among them. */
function outdated(state: State, rows: Rows) {
  const old = versionsOf(rows)
    .filter(({ version }) => version.number !== state.serving)
    .slice(APP_VERSIONS_MAX - (state.serving === undefined ? 1 : 2));
  const kept = new Set(
    versionsOf(rows)
      .filter((row) => !old.includes(row))
      .map(({ version }) => version.bundle),
  );
  return {
    removed: Object.fromEntries(old.map(({ version }) => [`version.${version.number}`, null])),
    bundles: old.map(({ version }) => version.bundle).filter((bundle) => !kept.has(bundle)),
  };
}

const purgeOf = (key: string, bundles: readonly string[]): Envelope[] =>
  bundles.map((bundle) => envelope(appPurge, key, "removeBundle", { bundle }));

/** Returns the versions, newest first. */
const versionsOf = (rows: Rows): VersionRow[] =>
  [...rows.values()]
    .filter((row) => "version" in row)
    .sort((one, other) => other.version.number - one.version.number);

const secretsOf = (rows: Rows): SecretRow[] =>
  [...rows.values()]
    .filter((row) => "secret" in row)
    .sort((one, other) => (one.secret.name < other.secret.name ? -1 : 1));

function configOf(rows: Rows, number: number | undefined): VersionRow["config"] | undefined {
  const row = rows.get(`version.${number}`);
  return row && "version" in row ? row.config : undefined;
}

function versionOf(rows: Rows, number: number, key: string): VersionRow {
  const row = rows.get(`version.${number}`);
  if (row && "version" in row) return row;
  throw notFound(key, `it has no version ${number}`);
}

function previousOf(state: State, rows: Rows): AppVersion["number"] | undefined {
  return versionsOf(rows).find(
    ({ version }) => version.status === "ready" && version.number < (state.serving ?? 0),
  )?.version.number;
}

function checkThere(
  state: State,
  key: string,
): asserts state is State & { id: string; createdAt: number; updatedAt: number } {
  if (state.status !== "there") throw notFound(key, "there is no such app");
}

const notFound = (key: string, reason: string) =>
  new ActorError("not_found", `Cannot find app "${readAppKey(key).app}": ${reason}`);
const conflict = (key: string, reason: string) =>
  new ActorError("conflict", `Cannot change app "${readAppKey(key).app}": ${reason}`);
