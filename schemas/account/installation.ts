/**
 * Messages of the actor of the installation, one for a whole cluster. It stores the account of the first start and
 * the administrators. The key is "main".
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Email, Id } from "../values.ts";

export const INSTALLATION_KEY = "main";

/** Limits the administrators of one installation. */
export const ADMINISTRATORS_MAX = 50;

export const Administrator = z.object({ userId: Id, email: Email });
const Administrators = z.object({ administrators: z.array(Administrator).max(ADMINISTRATORS_MAX) });

export const installation = defineContract({
  kind: "installation",
  messages: {
    /** Returns the account of the first start; null until a process has claimed it. */
    get: { input: z.object({}), reply: z.object({ accountId: Id.nullable() }) },
    /**
     * Claims the first account. Only the first claim has an effect. Every claim returns the account of the first
     * claim.
     */
    claim: { input: z.object({ accountId: Id }), reply: z.object({ accountId: Id }) },

    /**
     * Sent at each start: makes the first user an administrator. Changes nothing if the installation ever had an
     * administrator.
     */
    nameFirst: { input: Administrator, reply: z.object({}) },
    listAdministrators: { input: z.object({}), reply: Administrators },
    isAdministrator: { input: z.object({ userId: Id }), reply: z.object({ is: z.boolean() }) },
    /** Adds an administrator. Refuses as `limit_reached` past the limit. Repeating the call changes nothing. */
    addAdministrator: { input: Administrator, reply: z.object({}) },
    /**
     * Removes an administrator. Refuses as `not_found` for another user, and as `conflict` for the last
     * administrator.
     */
    removeAdministrator: { input: z.object({ userId: Id }), reply: z.object({}) },
  },
});
