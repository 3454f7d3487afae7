/** State of a session. The secret is never stored. */
import { z } from "zod";
import { SessionEntry } from "../../../schemas/account/session.ts";
import { Sha256 } from "../../../schemas/values.ts";

export const SessionState = z.discriminatedUnion("status", [
  z.object({ status: z.literal("none") }),
  SessionEntry.extend({ status: z.literal("open"), secretHash: Sha256.meta({ secret: true }) }),
]);
export type SessionState = z.infer<typeof SessionState>;
