/** Wire shapes of the sessions of a person: browsers in which they are signed in. */
import { z } from "zod";
import { Id } from "../../values.ts";

export const SessionPath = z.strictObject({ session_id: Id });

export const WireSession = z.object({
  id: Id,
  signed_in_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  is_current: z.boolean().describe("Whether this request uses this session"),
});

export const EndedSession = z.object({ id: Id });
