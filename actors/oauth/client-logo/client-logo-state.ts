/** State of our copy of an OAuth client's logo. */
import { z } from "zod";
import { Logo } from "../../../schemas/oauth/client-logo.ts";

export const ClientLogoState = z.object({
  /** The address of the logo; absent if the client has no logo. */
  uri: z.string().optional(),
  /** Number of fetches of this address since the client last set it. */
  attempt: z.int().min(0),
  copy: Logo.optional(),
});
export type ClientLogoState = z.infer<typeof ClientLogoState>;
