/** What is kept of an account. */
import { z } from "zod";
import { Member, TokenEntry, UsageDay } from "../../schemas/account.ts";
import { EpochMs } from "../../schemas/values.ts";

export const AccountState = z.object({
  /** 0 until the account is opened. */
  createdAt: EpochMs,
  name: z.string(),
  members: z.array(Member),
  tokens: z.array(TokenEntry),
  /** Oldest first, days without use left out. */
  usage: z.array(UsageDay),
  /** Tasks whose browser time was counted last. */
  countedTasks: z.array(z.string()),
});
export type AccountState = z.infer<typeof AccountState>;
