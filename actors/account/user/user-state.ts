/** State of a user. */
import { z } from "zod";
import { Membership } from "../../../schemas/account/user.ts";
import { Id, PasswordVersion } from "../../../schemas/values.ts";

/** Converts memberships of the first release, in which a user had only one role in an account. */
const StoredMembership = z.preprocess((stored) => {
  if (typeof stored !== "object" || stored === null || !("role" in stored)) return stored;
  const { role, ...membership } = stored;
  return { ...membership, roles: [role] };
}, Membership);

export const UserState = z.object({
  /** The user's id; empty until the user is registered. */
  id: z.string(),
  email: z.string(),
  passwordHash: z.string().meta({ secret: true }),
  passwordVersion: PasswordVersion,
  accounts: z.array(StoredMembership),
  /** The ids of the user's sessions, the latest last. */
  sessions: z.array(Id).optional(),
});
