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

/** The domain of client_uri, and how its lookups go. */
const Domain = Verification.omit({ text: true }).extend({
  /** When they began, or began anew. */
  startedAt: EpochMs,
  pace: DomainPace,
  /** Lookups since then. */
  lookups: z.int().min(0),
  /** The number of the one that is not answered yet. */
  awaiting: z.int().optional(),
});
export type Domain = DeepReadonly<z.infer<typeof Domain>>;

const Live = z.object({
  life: z.literal("live"),
  accountId: Id,
  registration: Registration,
  visibility: Visibility,
  secrets: z.array(StoredSecret),
  /** The text that the TXT record must contain, for any domain. */
  code: Id,
  domain: Domain.optional(),
  /** Lookups so far: each has a number. */
  checks: z.int().min(0),
  createdAt: EpochMs,
  updatedAt: EpochMs,
  promotedAt: EpochMs.optional(),
  /** The number of the next change in the log. */
  nextChange: z.int().min(0),
  /** Entries in the log that people have made within a day, and when that day began. */
  lately: z.object({ since: EpochMs, entries: z.int().min(0) }).optional(),
});
export type LiveClient = DeepReadonly<z.infer<typeof Live>>;

export const OAuthClientState = z.discriminatedUnion("life", [
  z.object({ life: z.literal("none") }),
  Live,
  z.object({ life: z.literal("removed"), accountId: Id, removedAt: EpochMs }),
]);
export type OAuthClientState = DeepReadonly<z.infer<typeof OAuthClientState>>;

/** A change, in the row of its number. */
export const ChangeRow = AuditEntry;
export type ChangeRow = DeepReadonly<z.infer<typeof ChangeRow>>;

export const changeRow = (number: number) => `change.${number}`;
