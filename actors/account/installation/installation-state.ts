/** The stored first account and administrators of this installation. */
import { z } from "zod";
import { Administrator } from "../../../schemas/account/installation.ts";

export const InstallationState = z.object({
  /** The id of the first account; empty until a first start has claimed it. */
  accountId: z.string(),
  /** The administrators; absent until a start has added the first user. */
  administrators: z.array(Administrator).optional(),
});
