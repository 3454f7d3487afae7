/** State of our copy of an OAuth client's logo. */
import { z } from "zod";
import { Logo } from "../../../schemas/oauth/client-logo.ts";
import { EpochMs } from "../../../schemas/values.ts";

export const ClientLogoState = z.object({
  /** The address of the logo; absent if the client has no logo. */
  uri: z.string().optional(),
  /** Number of fetches of this address since the client last set it. */
  attempt: z.int().min(0),
  /** The fetch that has no result yet, and when it was queued. `attempt` is 0 if the client set its logo meanwhile. */
  fetching: z.object({ uri: z.string(), attempt: z.int().min(1), queuedAt: EpochMs }).optional(),
  copy: Logo.optional(),
});
export type ClientLogoState = z.infer<typeof ClientLogoState>;
