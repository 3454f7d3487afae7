/** State of our copy of an OAuth client's logo. */
import { z } from "zod";
import { Logo } from "../../../schemas/oauth/client-logo.ts";

export const ClientLogoState = z.object({
  /** The address that is copied. Absent: the client has no logo. */
  uri: z.string().optional(),
  /** Fetches of this address since the client named it. */
  attempt: z.int().min(0),
  copy: Logo.optional(),
});
export type ClientLogoState = z.infer<typeof ClientLogoState>;
