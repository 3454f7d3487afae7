/** Wire shapes of an account's members, invitations and roles. */
import { z } from "zod";
import { listingFields } from "../../http/listing.ts";
import { Email, Id } from "../../values.ts";
import { ALL_ROLES, Permission, ROLES, Role } from "../permissions.ts";

export const MemberPath = z.strictObject({
  account_id: Id,
  member_id: Id.describe("The id of a user or of an invitation"),
});

/** Clients of the public API send roles in the form in which they were listed. Only the id counts. */
const RequestedRole = z.union([
  Role,
  z
    .strictObject({
      id: Role,
      name: z.unknown().optional(),
      description: z.unknown().optional(),
      permissions: z.unknown().optional(),
    })
    .transform(({ id }) => id),
]);

const RequestedRoles = z
  .array(RequestedRole)
  .min(1)
  .max(ALL_ROLES.length)
  .refine((roles) => new Set(roles).size === roles.length, { error: "Expected no duplicates" })
  .meta({ uniqueItems: true })
  .describe(`Of ${ALL_ROLES.join(", ")}`);

export const InviteMember = z
  .strictObject({
    email: Email,
    roles: RequestedRoles,
    status: z
      .enum(["accepted", "pending"])
      .optional()
      .describe(
        "Accepted but has no effect: each member is pending until they accept the invitation",
      ),
  })
  .meta({ example: { email: "ada@example.com", roles: ["Member"] } });
export type InviteMember = z.output<typeof InviteMember>;

export const UpdateMember = z
  .strictObject({ roles: RequestedRoles })
  .meta({ example: { roles: ["OAuth Client Write", "Member"] } });
export type UpdateMember = z.output<typeof UpdateMember>;

const ORDERS = ["user.email", "status"] as const;

export const MembersQuery = z.strictObject({
  ...listingFields,
  status: z
    .enum(["accepted", "pending", "rejected"])
    .optional()
    .describe(
      "Returns only members (accepted) or invitations (pending); `rejected` matches nobody",
    ),
  order: z.enum(ORDERS).optional().describe("Field to sort by; defaults to the time of joining"),
});
export type MembersQuery = z.output<typeof MembersQuery>;

export const RolePath = z.strictObject({ account_id: Id, role_id: Role });

export const WireRole = z.object({
  id: Role,
  name: z.enum(ALL_ROLES),
  description: z.string(),
  permissions: z.array(Permission),
});

export const WireMember = z.object({
  id: Id,
  email: z.string(),
  status: z
    .enum(["accepted", "pending"])
    .describe("`pending` if the invitation is not accepted yet"),
  roles: z.array(WireRole),
  expires_at: z.iso.datetime().optional().describe("The time when the invitation expires"),
});

/** The answer to an invitation. Only this answer contains the link with the invitation's secret. */
export const InvitedMember = WireMember.extend({
  invitation_token: z.string().meta({ secret: true }).describe("Shown only in this response"),
  invitation_url: z
    .string()
    .meta({ secret: true })
    .describe(
      "The address where the invited person accepts; send it to them, since the platform sends no e-mail",
    ),
});

export const RemovedMember = z.object({ id: Id });

export const LeftAccount = z.object({ id: Id.describe("The id of the account") });

export const wireRole = (id: Role): z.input<typeof WireRole> => ({
  id,
  name: id,
  description: ROLES[id].description,
  permissions: [...ROLES[id].permissions],
});
