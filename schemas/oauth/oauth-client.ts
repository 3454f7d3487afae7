/**
 * Messages of the actor that stores an OAuth client: its registration, secrets and domain. The key is its client_id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { PAGE_ENTRIES_MAX } from "../limits.ts";
import { tellAgain } from "../tell-again.ts";
import { EpochMs, Id, Sha256 } from "../values.ts";
import { AUDIT_VALUE_CHARS_MAX, CLIENT_SECRETS_MAX, DNS_ANSWER_CHARS_MAX } from "./limits.ts";
import { ClientSettings, ClientSettingsPatch, Registration } from "./oauth-client-settings.ts";

/**
 * `private`: only members of the account that owns the client can use it. `public`: everybody can use it. A public
 * client can never become private again.
 */
export const Visibility = z.enum(["private", "public"]);

export const VerificationStatus = z.enum(["pending", "in_progress", "verified", "failed"]);

/** State of the DNS verification of client_uri's host. */
export const Verification = z.object({
  status: VerificationStatus,
  host: z.string(),
  /** The complete text of the TXT record that the host must have. */
  text: z.string(),
  /** The resolver's last answer, in words for people. */
  lastAnswer: z.string().max(DNS_ANSWER_CHARS_MAX).optional(),
  lastCheckedAt: EpochMs.optional(),
  nextCheckAt: EpochMs.optional(),
  verifiedAt: EpochMs.optional(),
  /** The time at which a TXT record that existed before was first found missing. */
  missingSince: EpochMs.optional(),
});
export type Verification = z.infer<typeof Verification>;

/** A client secret without its hash. Only the authorization server may read the hash. */
export const SecretEntry = z.object({
  id: Id,
  lastFour: z.string().length(4),
  createdAt: EpochMs,
  /** Time of the last use, with a precision of SECRET_USED_EVERY_MS. */
  lastUsedAt: EpochMs.optional(),
});
export type SecretEntry = z.infer<typeof SecretEntry>;

/** A client in the form in which it is shown to people and programs, without the hashes of its secrets. */
export const ClientEntry = Registration.extend({
  accountId: Id,
  visibility: Visibility,
  verification: Verification.optional(),
  /** Oldest first. */
  secrets: z.array(SecretEntry).max(CLIENT_SECRETS_MAX),
  createdAt: EpochMs,
  updatedAt: EpochMs,
  /** Time at which the client became public. */
  promotedAt: EpochMs.optional(),
});
export type ClientEntry = z.infer<typeof ClientEntry>;

/** The author of a change: an API token, a user, or the platform itself. */
export const Author = z.object({
  type: z.enum(["api_token", "user", "system"]),
  /** Id of the token or user; empty for the platform. */
  id: z.string().max(64),
  /** The OAuth client through which the user made the change. */
  clientId: Id.optional(),
});
export type Author = z.infer<typeof Author>;

export const AuditAction = z.enum([
  "created",
  "updated",
  "promoted",
  "secret_added",
  "secret_removed",
  "verification_started",
  "verified",
  "verification_failed",
  "record_missing",
  "record_back",
  "deleted",
]);
export type AuditAction = z.infer<typeof AuditAction>;

export const AuditEntry = z.object({
  number: z.int().min(0),
  at: EpochMs,
  by: Author,
  action: AuditAction,
  /** Values as JSON, truncated if long. Null means that there is no value. */
  changes: z.array(
    z.object({
      field: z.string(),
      from: z.string().max(AUDIT_VALUE_CHARS_MAX).nullable(),
      to: z.string().max(AUDIT_VALUE_CHARS_MAX).nullable(),
    }),
  ),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

/**
 * The hash of a new secret. The gateway that generated the secret hashes it, so that the secret itself is never sent
 * over the bus.
 */
export const NewSecret = z.object({
  hash: Sha256.meta({ secret: true }),
  lastFour: z.string().length(4),
});

/**
 * `pollMs` is the longest pause between two DNS lookups of a domain that is not verified yet. After `windowMs` these
 * lookups stop.
 */
export const DomainPace = z.object({ pollMs: z.int().min(1), windowMs: z.int().min(1) });

/** Result of a lookup: the text was found, was missing, or the lookup failed. */
export const DomainOutcome = z.enum(["found", "absent", "unanswered"]);

const Nothing = z.object({});
/** The account that a message is for. For every other account than its own, the client does not exist. */
const Owned = z.object({ accountId: Id });
const Change = Owned.extend({ by: Author });

export const oauthClient = defineContract({
  kind: "oauth-client",
  messages: {
    /**
     * Creates the client. Repeating the call with the same secret changes nothing. Refuses as `conflict` if the
     * client exists with another secret.
     */
    create: {
      input: Change.extend({
        settings: ClientSettings,
        /** Absent for clients that authenticate with `none`. */
        secret: NewSecret.optional(),
        pace: DomainPace,
      }),
      reply: ClientEntry,
    },
    get: { input: Owned, reply: ClientEntry },
    /**
     * Changes the client. Absent fields keep their values, and null removes a value. If `clientUri` is present, its
     * domain is verified again.
     */
    update: {
      input: Change.extend({
        patch: ClientSettingsPatch,
        visibility: Visibility.optional(),
        pace: DomainPace,
      }),
      reply: ClientEntry,
    },
    /**
     * Adds a new secret. The present secret stays valid too. If there are two already, the new secret replaces the
     * newer one, provided that it was never used. Refuses as `conflict` if it was used.
     */
    addSecret: { input: Change.extend({ secret: NewSecret }), reply: Nothing },
    /** Removes the older one of the client's two secrets. */
    removeOldSecret: { input: Change, reply: Nothing },
    /** Deletes the client. Its grants become invalid immediately. The change log stays for AUDIT_KEPT_MS. */
    remove: { input: Change, reply: Nothing },
    /** Lists the changes, newest first. Works for a deleted client too. */
    listChanges: {
      input: Owned.extend({
        cursor: z.string().max(32).optional(),
        count: z.int().min(1).max(PAGE_ENTRIES_MAX),
      }),
      reply: z.object({ entries: z.array(AuditEntry), cursor: z.string().optional() }),
    },

    /**
     * Returns the client with the hashes of its secrets, which the authorization server compares in constant time.
     * Only the authorization server may call this. Refuses as `not_found` if the client was deleted or never existed.
     */
    getForAuthorization: {
      input: Nothing,
      reply: ClientEntry.extend({
        secrets: z
          .array(SecretEntry.extend({ hash: Sha256.meta({ secret: true }) }))
          .max(CLIENT_SECRETS_MAX),
      }),
    },
    /**
     * Sent by the authorization server when a secret was used and its stored last use is at least
     * SECRET_USED_EVERY_MS old.
     */
    secretUsed: { input: z.object({ secretId: Id }) },

    tellAgain,

    /** Sent by the worker that looked up the domain. `check` is the number of the lookup. */
    domainChecked: {
      input: z.object({
        check: z.int().min(1),
        outcome: DomainOutcome,
        answer: z.string().max(DNS_ANSWER_CHARS_MAX),
      }),
    },
    /**
     * Reminders: `checkDomain` starts the next DNS lookup, and `forget` deletes a removed client with its change log.
     */
    checkDomain: { input: Nothing },
    forget: { input: Nothing },
  },
  /** Published after each change that concerns an authorization server. */
  live: z.object({ change: z.enum(["updated", "removed"]) }),
});
