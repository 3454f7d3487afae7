/** Messages of the actor that stores the list of an account's OAuth clients. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { PAGE_ENTRIES_MAX } from "../limits.ts";
import { Id } from "../values.ts";

const Nothing = z.object({});
const Client = z.object({ clientId: Id });

export const oauthClientList = defineContract({
  kind: "oauth-client-list",
  messages: {
    /**
     * Reserves a place in the list before a client is created. Refuses past the account's limit of clients, and as
     * `rate_limited` past its limit of reservations within a day.
     */
    reserve: { input: Client, reply: Nothing },
    /** `created` and `removed` are sent by the actor of the client. */
    created: { input: Client },
    removed: { input: Client },
    /**
     * Lists the clients, newest first. The list also contains reserved clients, which may not exist yet. The client's
     * own actor knows whether it exists.
     */
    list: {
      input: z.object({
        cursor: z.string().max(32).optional(),
        count: z.int().min(1).max(PAGE_ENTRIES_MAX),
      }),
      reply: z.object({ clientIds: z.array(Id), cursor: z.string().optional() }),
    },
  },
});
