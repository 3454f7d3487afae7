/** Messages of an app: its versions, the choice of the serving version, and its secrets. The key is `appKey`. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { REPO_HAPPENED, RepoHappened } from "../repositories/repo-events.ts";
import { EpochMs, Id } from "../values.ts";
import { AppConfig } from "./app-config.ts";
import { AppName, BindingName } from "./app-names.ts";
import { APP_SECRETS_MAX, APP_VERSIONS_MAX, SEALED_CHARS_MAX } from "./limits.ts";

export const AppVersion = z.object({
  number: z.int().min(1),
  createdAt: EpochMs,
  /** A blob: the script. */
  bundle: z.string(),
  bundleBytes: z.int().min(0),
  /** `broken`: the version did not start, and never serves. */
  status: z.enum(["checking", "ready", "broken"]),
  /** Why it did not start. */
  reason: z.string().optional(),
});
export type AppVersion = z.infer<typeof AppVersion>;

/**
 * A secret sealed with a key that is not on the bus. `actors/apps/lib/app-secrets` and gateways seal it. The bus and
 * its operators see only this sealed form.
 */
export const SealedSecret = z.object({
  name: BindingName,
  sealed: z.string(),
  updatedAt: EpochMs,
});
export type SealedSecret = z.infer<typeof SealedSecret>;

/** Everything that a process needs to serve the app. */
export const ServingApp = z.object({
  version: z.int().min(1),
  bundle: z.string(),
  config: AppConfig,
  secrets: z.array(SealedSecret).max(APP_SECRETS_MAX),
  /** Id of this app. An earlier app of the same name had another id. Hosts of earlier versions reply without it. */
  id: Id.optional(),
  /** A number that changes with the version and with each secret. A process with an older revision is drained. */
  revision: z.int().min(1),
});
export type ServingApp = z.infer<typeof ServingApp>;

const Overview = z.object({
  id: Id,
  name: AppName,
  createdAt: EpochMs,
  updatedAt: EpochMs,
  serving: z.int().min(1).optional(),
  config: AppConfig.optional(),
  versions: z.array(AppVersion).max(APP_VERSIONS_MAX + 1),
  secrets: z.array(SealedSecret.omit({ sealed: true })),
});
export type AppOverview = z.infer<typeof Overview>;

const Nothing = z.object({});

export const app = defineContract({
  kind: "app",
  live: z.object({ revision: z.int().min(0) }),
  messages: {
    get: { input: Nothing, reply: Overview },
    /** Returns the serving version. Refuses with `not_found` if no version serves. */
    getServing: { input: Nothing, reply: ServingApp },
    /**
     * Returns the id of the app; no id if there is no such app, also while it is being deleted. Hosts of earlier
     * versions reply with an error, because they do not know this message.
     */
    getId: { input: Nothing, reply: z.object({ id: Id.optional() }) },
    /** Returns a version for its check. It may not serve yet. */
    getVersion: { input: z.object({ version: z.int().min(1) }), reply: ServingApp },
    /** Adds a version that must be checked. Its bundle is already stored. */
    stage: {
      input: z.object({
        config: AppConfig,
        bundle: z.string(),
        bundleBytes: z.int().min(0),
      }),
      reply: z.object({ version: z.int().min(1) }),
    },
    /** Reports that the version started. It serves from now on, unless a later one does already. */
    activate: { input: z.object({ version: z.int().min(1) }), reply: Overview },
    /** Reports that the version did not start. The serving version stays. */
    reject: {
      input: z.object({ version: z.int().min(1), reason: z.string().max(4_000) }),
      reply: Nothing,
    },
    /** Lets another version serve that was ready. Defaults to the latest ready version before the serving one. */
    rollBack: { input: z.object({ version: z.int().min(1).optional() }), reply: Overview },
    putSecret: {
      input: z.object({ name: BindingName, sealed: z.string().max(SEALED_CHARS_MAX) }),
      reply: Nothing,
    },
    /**
     * Stores the same secret, sealed with another key. Refuses with `conflict` if the secret was set or deleted since
     * it was read.
     */
    resealSecret: {
      input: z.object({
        name: BindingName,
        from: z.string().max(SEALED_CHARS_MAX),
        to: z.string().max(SEALED_CHARS_MAX),
      }),
      reply: Nothing,
    },
    deleteSecret: { input: z.object({ name: BindingName }), reply: Nothing },
    /** Deletes the app with its versions and secrets immediately, and its agents' data step by step. */
    delete: { input: Nothing, reply: Nothing },
    /** Events of the account's repositories that match the rules of the serving version. */
    [REPO_HAPPENED]: { input: RepoHappened },
    /** Returns the id of the app while it is being deleted, and otherwise nothing. */
    getDeleting: { input: Nothing, reply: z.object({ id: Id.optional() }) },
    /** A reminder that enqueues the deletion again, because it failed or its result was lost. */
    purgeAgain: { input: Nothing },
    /**
     * Everything that the app with this id stored was removed. Workers of earlier versions send no id. Such a report
     * may be about an earlier app of the same name.
     */
    purged: { input: z.object({ id: Id.optional() }) },
    /** The deletion of the app with this id failed. */
    purgeFailed: { input: z.object({ id: Id.optional() }) },
  },
});
