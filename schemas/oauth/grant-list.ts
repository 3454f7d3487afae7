/** The contract of a person's consents to clients, and of the clients' grants. The key is the user's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id } from "../values.ts";
import { CLIENTS_PER_PAGE, GRANTS_PER_CLIENT_MAX } from "./limits.ts";
import { Consent } from "./oauth-grant.ts";

/** A client the person allowed something. */
export const AllowedClient = Consent.extend({
  clientId: Id,
  consentedAt: EpochMs,
  lastGrantAt: EpochMs.optional(),
  grantIds: z.array(Id).max(GRANTS_PER_CLIENT_MAX),
});
export type AllowedClient = z.infer<typeof AllowedClient>;

/** Behind which consent a page begins: when it was given, and for which client. */
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
     * Records a person's consent. For the same accounts it merges with the earlier consent; for other accounts it
     * replaces that. Refuses with `limit_reached` past CLIENTS_PER_USER_MAX clients.
     */
    consent: { input: Consent.extend({ clientId: Id }), reply: Nothing },
    getConsent: { input: Client, reply: z.object({ consent: Consent.nullable() }) },
    /** The latest consent first, from a cursor on. */
    list: {
      input: z.object({ cursor: ListCursor.optional() }),
      reply: z.object({
        clients: z.array(AllowedClient).max(CLIENTS_PER_PAGE),
        cursor: ListCursor.optional(),
      }),
    },
    /** Withdraws the client's consent, and revokes its grants by mail. The reply names them. */
    revokeClient: { input: Client, reply: z.object({ grantIds: z.array(Id) }) },
    /** Records an open grant. From now on, revoking the client ends it. */
    addGrant: { input: Grant, reply: Nothing },
    /** Sent by a grant, in case the gateway that opened it died before `addGrant`. */
    grantOpened: { input: Grant },
    /** Sent by a grant. */
    grantEnded: { input: Grant },
  },
});
