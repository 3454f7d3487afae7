/** State of an OAuth client: one value, and one row for each change in its log. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import {
  AuditEntry,
  DomainPace,
  SecretEntry,
  Verification,
  Visibility,
} from "../../../schemas/oauth/oauth-client.ts";
import { Registration } from "../../../schemas/oauth/oauth-client-settings.ts";
import { EpochMs, Id, Sha256 } from "../../../schemas/values.ts";

const StoredSecret = SecretEntry.extend({ hash: Sha256.meta({ secret: true }) });
export type StoredSecret = DeepReadonly<z.infer<typeof StoredSecret>>;

/** The domain of client_uri, and the state of its lookups. */
const Domain = Verification.omit({ text: true }).extend({
  /** Time at which the verification of this domain began, or began again. */
  startedAt: EpochMs,
  pace: DomainPace,
  /** The number of lookups since `startedAt`. */
  lookups: z.int().min(0),
  /** The number of the lookup that has no answer yet. */
  awaiting: z.int().optional(),
});
export type Domain = DeepReadonly<z.infer<typeof Domain>>;

const Live = z.object({
  life: z.literal("live"),
  accountId: Id,
  registration: Registration,
  visibility: Visibility,
  secrets: z.array(StoredSecret),
  /**
   * The random part of the text that the TXT record of the client's domain must contain. It is the same for every
   * domain.
   */
  code: Id,
  domain: Domain.optional(),
  /** The number of lookups so far, which is also the number of the last lookup. */
  checks: z.int().min(0),
  /**
   * The lookup whose result did not arrive yet, also if the domain changed meanwhile, and when its task was queued.
   */
  openLookup: z.object({ check: z.int().min(1), queuedAt: EpochMs }).optional(),
  createdAt: EpochMs,
  updatedAt: EpochMs,
  promotedAt: EpochMs.optional(),
  /** The number of the next change in the log. */
  nextChange: z.int().min(0),
  /**
   * The number of changes that people caused within a day, and the start of this day. `authors` has the numbers of
   * each author; absent in states of the first release.
   */
  lately: z
    .object({
      since: EpochMs,
      entries: z.int().min(0),
      authors: z.record(z.string(), z.int().min(0)).optional(),
    })
    .optional(),
});
export type LiveClient = DeepReadonly<z.infer<typeof Live>>;

export const OAuthClientState = z.discriminatedUnion("life", [
  z.object({ life: z.literal("none") }),
  Live,
  z.object({ life: z.literal("removed"), accountId: Id, removedAt: EpochMs }),
]);
export type OAuthClientState = DeepReadonly<z.infer<typeof OAuthClientState>>;

/** A change of the client. The name of its row contains its number. */
export const ChangeRow = AuditEntry;
export type ChangeRow = DeepReadonly<z.infer<typeof ChangeRow>>;

export const changeRow = (number: number) => `change.${number}`;
