/** State of the installation. */
import { z } from "zod";

export const InstallationState = z.object({
  /** Empty until a first start claimed it. */
  accountId: z.string(),
});
