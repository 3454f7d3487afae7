/** The contract of an account: its name, members and API tokens, and the browser time it used. The key is its id. */
import { z } from "zod";
import { defineContract } from "./contract.ts";
import { ACCOUNT_NAME_CHARS_MAX, TOKEN_NAME_CHARS_MAX } from "./limits.ts";
import { Permission } from "./permissions.ts";
import { Email, EpochMs, Id } from "./values.ts";

export const Role = z.enum(["Super Administrator"]);
export type Role = z.infer<typeof Role>;

export const Member = z.object({ userId: Id, email: Email, role: Role });

/** All of a token but its secret, of which only the `api-token` kind keeps a hash. */
export const TokenEntry = z.object({
  id: Id,
  name: z.string().min(1).max(TOKEN_NAME_CHARS_MAX),
  permissions: z.array(Permission).min(1),
  /** The secret's last characters, so that a person can tell tokens apart. */
  lastFour: z.string().length(4),
  createdAt: EpochMs,
  notBeforeAt: EpochMs.optional(),
  expiresAt: EpochMs.optional(),
});
export type TokenEntry = z.infer<typeof TokenEntry>;

/** Browser time of one UTC day. */
export const UsageDay = z.object({ date: z.iso.date(), ms: z.int().min(0), tasks: z.int().min(0) });
export type UsageDay = z.infer<typeof UsageDay>;

const AccountName = z.string().min(1).max(ACCOUNT_NAME_CHARS_MAX);
const Nothing = z.object({});

export const account = defineContract({
  kind: "account",
  messages: {
    /** Makes the account. Repeating it with the same owner changes nothing; with another it is a conflict. */
    open: { input: z.object({ name: AccountName, owner: Member }), reply: Nothing },
    get: {
      input: Nothing,
      reply: z.object({ name: AccountName, createdAt: EpochMs, members: z.array(Member) }),
    },

    createToken: { input: TokenEntry.omit({ createdAt: true }), reply: TokenEntry },
    listTokens: { input: Nothing, reply: z.object({ tokens: z.array(TokenEntry) }) },
    getToken: { input: z.object({ id: Id }), reply: TokenEntry },
    removeToken: { input: z.object({ id: Id }), reply: Nothing },

    /** Refuses when this UTC day's browser time has reached the limit; 0 is no limit. */
    admitRendering: {
      input: z.object({ limitMs: z.int().min(0) }),
      reply: z.object({ usedMs: z.int().min(0) }),
    },
    /** Reported once a task, whatever became of it. */
    browserUsed: { input: z.object({ ms: z.int().min(0), taskId: z.string().min(1).max(64) }) },
    getUsage: {
      input: Nothing,
      reply: z.object({ today: UsageDay, resetsAt: EpochMs, days: z.array(UsageDay) }),
    },
  },
});
