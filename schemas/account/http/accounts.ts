/** Wire shapes of accounts and their usage. */
import { z } from "zod";
import { listingFields } from "../../http/listing.ts";
import { Id } from "../../values.ts";

export const AccountPath = z.strictObject({
  account_id: Id.describe("The account's id, from data/credentials.json or from GET /accounts"),
});

export const AccountsQuery = z.strictObject({
  ...listingFields,
  name: z.string().optional().describe("Returns only accounts with this name"),
});

export const WireAccount = z.object({
  id: Id,
  name: z.string(),
  type: z.literal("standard"),
  created_on: z.iso.datetime(),
});

export const WireUser = z.object({
  id: Id,
  email: z.string(),
  is_administrator: z
    .boolean()
    .optional()
    .describe(
      "Whether the user is an administrator of the installation; present only with a session",
    ),
});

export const WireUsage = z.object({
  date: z.iso.date().describe("The current day in UTC"),
  browser_ms_used: z.int(),
  browser_ms_limit: z.int().nullable().describe("Limit for one UTC day; null if there is no limit"),
  resets_at: z.iso.datetime(),
  days: z
    .array(z.object({ date: z.iso.date(), browser_ms_used: z.int(), tasks: z.int() }))
    .describe("Days with usage in about the last month, oldest first"),
});
