/**
 * The contract of the installation, one for a whole cluster. It stores the account of the first start and the
 * administrators. The key is "main".
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Email, Id } from "../values.ts";

export const INSTALLATION_KEY = "main";

/** People who operate one installation. */
export const ADMINISTRATORS_MAX = 50;

export const Administrator = z.object({ userId: Id, email: Email });
const Administrators = z.object({ administrators: z.array(Administrator).max(ADMINISTRATORS_MAX) });

export const installation = defineContract({
  kind: "installation",
  messages: {
    /** Null until somebody claimed it. */
    get: { input: z.object({}), reply: z.object({ accountId: Id.nullable() }) },
    /** The first claim wins. Every claim returns the winner's account. */
    claim: { input: z.object({ accountId: Id }), reply: z.object({ accountId: Id }) },

    /**
     * Each start makes the first user an administrator. Changes nothing if the installation ever had an administrator.
     */
    nameFirst: { input: Administrator, reply: z.object({}) },
    listAdministrators: { input: z.object({}), reply: Administrators },
    isAdministrator: { input: z.object({ userId: Id }), reply: z.object({ is: z.boolean() }) },
    /** Refuses `limit_reached`. Idempotent. */
    addAdministrator: { input: Administrator, reply: z.object({}) },
    /** Refuses `not_found`, and `conflict` for the last one. */
    removeAdministrator: { input: z.object({ userId: Id }), reply: z.object({}) },
  },
});
