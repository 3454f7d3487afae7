/** The stored first account and administrators of this installation. */
import { z } from "zod";
import { Administrator } from "../../../schemas/account/installation.ts";

export const InstallationState = z.object({
  /** Empty until a first start claimed it. */
  accountId: z.string(),
  /** Absent until a start has added the first user. */
  administrators: z.array(Administrator).optional(),
});
