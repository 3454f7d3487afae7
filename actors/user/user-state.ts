/** What is kept of a user. */
import { z } from "zod";
import { Membership } from "../../schemas/user.ts";

export const UserState = z.object({
  /** Empty until the user is registered. */
  id: z.string(),
  email: z.string(),
  passwordHash: z.string().meta({ secret: true }),
  accounts: z.array(Membership),
});
