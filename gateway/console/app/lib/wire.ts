/** The shapes of answers, from the schemas that the platform checks them with. */
import type { z } from "zod";
import type * as accounts from "../../../../schemas/account/http/accounts.ts";
import type * as members from "../../../../schemas/account/http/members.ts";
import type * as sessions from "../../../../schemas/account/http/sessions.ts";
import type * as tokens from "../../../../schemas/account/http/tokens.ts";
import type * as apps from "../../../../schemas/apps/http/apps.ts";
import type * as crawls from "../../../../schemas/crawl/http/crawl-answers.ts";
import type * as clients from "../../../../schemas/oauth/http/oauth-clients.ts";
import type * as repositories from "../../../../schemas/repositories/http/artifacts-answers.ts";

export type WireAccount = z.output<typeof accounts.WireAccount>;
export type WireUser = z.output<typeof accounts.WireUser>;
export type WireUsage = z.output<typeof accounts.WireUsage>;
export type WireMember = z.output<typeof members.WireMember>;
export type InvitedMember = z.output<typeof members.InvitedMember>;
export type WireRole = z.output<typeof members.WireRole>;
export type WireSession = z.output<typeof sessions.WireSession>;
export type WireToken = z.output<typeof tokens.WireToken>;
export type CreatedToken = z.output<typeof tokens.CreatedToken>;
export type PermissionGroup = z.output<typeof tokens.PermissionGroup>;
export type WireOAuthClient = z.output<typeof clients.WireOAuthClient>;
export type CreatedOAuthClient = z.output<typeof clients.CreatedOAuthClient>;
export type WireOAuthChange = z.output<typeof clients.WireOAuthChange>;
export type WireScope = z.output<typeof clients.WireScope>;
export type WireCrawlEntry = z.output<typeof crawls.WireCrawlEntry>;
export type WireAgentUsage = z.output<typeof apps.WireAgentUsage>;
export type WireAppEntry = z.output<typeof apps.WireAppEntry>;
export type WireStored = z.output<typeof repositories.WireStored>;
