/** Wire shapes of accounts and their usage. */
import { z } from "zod";
import { listingFields } from "../../http/listing.ts";
import { Id } from "../../values.ts";

export const AccountPath = z.strictObject({
  account_id: Id.describe("The account_id in data/credentials.json, or as GET /accounts lists it"),
});

export const AccountsQuery = z.strictObject({
  ...listingFields,
  name: z.string().optional().describe("Only accounts of this name"),
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
    .describe("Of the installation; only in answers to a person's session"),
});

export const WireUsage = z.object({
  date: z.iso.date().describe("Today, UTC"),
  browser_ms_used: z.int(),
  browser_ms_limit: z.int().nullable().describe("Of a UTC day; null is no limit"),
  resets_at: z.iso.datetime(),
  days: z
    .array(z.object({ date: z.iso.date(), browser_ms_used: z.int(), tasks: z.int() }))
    .describe("Days with use, oldest first; about a month"),
});
