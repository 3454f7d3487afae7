/** Wire shapes of API tokens. */
import { z } from "zod";
import { listingFields } from "../../http/listing.ts";
import { shapedLike } from "../../http/shaped-like.ts";
import { TOKEN_NAME_CHARS_MAX } from "../../limits.ts";
import { Id } from "../../values.ts";
import { ALL_PERMISSIONS, PERMISSIONS, Permission } from "../permissions.ts";

/** The public API's name for the permissions that concern an account. */
export const ACCOUNT_SCOPE = "com.cloudflare.api.account";

export const TokenPath = z.strictObject({ account_id: Id, token_id: Id });

export const PermissionGroup = z.object({ id: Permission, name: z.enum(PERMISSIONS) });

const Time = z.iso.datetime({
  offset: true,
  error: 'Expected a time with its zone, as in "2030-01-31T12:00:00Z"',
});

const RequestedPolicy = z.strictObject({
  id: z.unknown().optional(),
  effect: z.literal("allow"),
  permission_groups: z
    // Clients send permission groups in the form in which they were listed, with their names. Only the id counts.
    .array(
      z.strictObject({
        id: Permission,
        name: z.unknown().optional(),
        meta: z.unknown().optional().describe("Labels that some clients send; they are not stored"),
      }),
    )
    .min(1)
    .max(ALL_PERMISSIONS.length),
  resources: z
    .record(z.string(), z.literal("*"), { error: shapedLike({ "account.<account_id>": "*" }) })
    .optional()
    .describe('A token opens its own account and nothing else: "account.<account_id>": "*"'),
});

const tokenFields = {
  name: z
    .string()
    .min(1)
    .max(TOKEN_NAME_CHARS_MAX)
    .refine((name) => name.isWellFormed(), {
      error: "Expected well-formed Unicode, without half of a surrogate pair",
    })
    .describe("The token's name"),
  policies: z.array(RequestedPolicy).min(1).max(ALL_PERMISSIONS.length),
  not_before: Time.refine((text) => Date.parse(text) >= 0, {
    error: "Expected a time from 1970 on",
  })
    .optional()
    .describe("The time from which the token is valid"),
  expires_on: Time.optional().describe("The time when the token expires; must be in the future"),
};

const isInOrder = ({
  not_before: from,
  expires_on: to,
}: {
  not_before?: string | undefined;
  expires_on?: string | undefined;
}) => !from || !to || Date.parse(from) < Date.parse(to);
const inOrder = { path: ["expires_on"], error: "Expected a time after not_before" };

const example = {
  name: "printer",
  policies: [{ effect: "allow", permission_groups: [{ id: "browser-rendering.write" }] }],
};

export const CreateToken = z
  .strictObject(tokenFields)
  .refine(isInOrder, inOrder)
  .meta({ examples: [example] });
export type CreateToken = z.output<typeof CreateToken>;

/** Clients send a token in the form in which they read it. Fields that only the server sets are ignored. */
const ofServer = z.unknown().optional();

export const UpdateToken = z
  .strictObject({
    ...tokenFields,
    status: z
      .enum(["active", "disabled", "expired"])
      .optional()
      .describe(
        "disabled: the token opens nothing until it is active again. Absent, or expired, which follows from expires_on alone: it stays disabled if it is",
      ),
    id: ofServer,
    issued_on: ofServer,
    modified_on: ofServer,
    last_used_on: ofServer,
    last_four: ofServer,
  })
  .refine(isInOrder, inOrder)
  .meta({ examples: [example] });
export type UpdateToken = z.output<typeof UpdateToken>;

export const TokensQuery = z.strictObject({
  ...listingFields,
  include_expired: z
    .enum(["true", "false"])
    .default("true")
    .describe("false leaves out expired tokens"),
});
export type TokensQuery = z.output<typeof TokensQuery>;

export const GroupsQuery = z.strictObject({
  ...listingFields,
  name: z.string().optional().describe("Returns only the group with this name"),
  scope: z.string().optional().describe(`Only groups of this scope; all are of ${ACCOUNT_SCOPE}`),
});
export type GroupsQuery = z.output<typeof GroupsQuery>;

export const WireToken = z.object({
  id: Id,
  name: z.string(),
  status: z.enum(["active", "disabled", "expired"]),
  last_four: z.string().length(4).describe("The last characters of the token"),
  issued_on: z.iso.datetime(),
  last_used_on: z.iso
    .datetime()
    .optional()
    .describe(
      "The last time the token was used, to within ten minutes; absent until its first use",
    ),
  not_before: z.iso.datetime().optional(),
  expires_on: z.iso.datetime().optional(),
  policies: z.array(
    z.object({
      effect: z.literal("allow"),
      permission_groups: z.array(PermissionGroup),
      resources: z.record(z.string(), z.literal("*")),
    }),
  ),
});

/** The answer to the creation of a token. Only this answer contains the secret. */
export const CreatedToken = WireToken.extend({
  value: z
    .string()
    .meta({ secret: true })
    .describe("The token itself; shown only in this response"),
});

export const RolledToken = z
  .string()
  .meta({ secret: true })
  .describe("The token itself; shown only in this response");

export const VerifiedToken = z.object({
  id: Id,
  status: z.literal("active"),
  not_before: z.iso.datetime().optional(),
  expires_on: z.iso.datetime().optional(),
});

export const DeletedToken = z.object({ id: Id });
