/**
 * Messages of the actor that stores a person's consents to clients, and the grants of these clients. The key is the
 * user's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id } from "../values.ts";
import { CLIENTS_PER_PAGE, GRANTS_PER_CLIENT_MAX } from "./limits.ts";
import { Consent } from "./oauth-grant.ts";

/** A client that the person has authorized, with its grants. */
export const AllowedClient = Consent.extend({
  clientId: Id,
  consentedAt: EpochMs,
  lastGrantAt: EpochMs.optional(),
  grantIds: z.array(Id).max(GRANTS_PER_CLIENT_MAX),
});
export type AllowedClient = z.infer<typeof AllowedClient>;

/** The position after which a page begins: the time of a consent and the id of its client. */
export const ListCursor = z
  .string()
  .regex(/^\d{1,15}\.[0-9a-f]{32}$/, "Expected a cursor of this list");

const Nothing = z.object({});
const Client = z.object({ clientId: Id });
const Grant = Client.extend({ grantId: Id });

export const grantList = defineContract({
  kind: "grant-list",
  messages: {
    /**
     * Records a person's consent. If it is for the same accounts as the earlier consent, both are merged. Otherwise
     * it replaces the earlier consent. Refuses with `limit_reached` past CLIENTS_PER_USER_MAX clients.
     */
    consent: { input: Consent.extend({ clientId: Id }), reply: Nothing },
    getConsent: { input: Client, reply: z.object({ consent: Consent.nullable() }) },
    /** Lists the authorized clients from a cursor on, the latest consent first. */
    list: {
      input: z.object({ cursor: ListCursor.optional() }),
      reply: z.object({
        clients: z.array(AllowedClient).max(CLIENTS_PER_PAGE),
        cursor: ListCursor.optional(),
      }),
    },
    /**
     * Withdraws the consent for the client, and revokes the client's grants by mail to their actors. Replies with the
     * ids of these grants.
     */
    revokeClient: { input: Client, reply: z.object({ grantIds: z.array(Id) }) },
    /**
     * Records an open grant. After this, revoking the client also ends this grant. `isRecorded` is false if the person
     * has withdrawn the consent meanwhile: then the grant must end. Actors of an earlier version omit it.
     */
    addGrant: { input: Grant, reply: z.object({ isRecorded: z.boolean().optional() }) },
    /** Sent by a new grant, so that it is recorded even if the gateway that opened it died before `addGrant`. */
    grantOpened: { input: Grant },
    /** Sent by a grant when it has ended. */
    grantEnded: { input: Grant },
  },
});
