/** State of an authorization request while a person decides. */
import { z } from "zod";
import { EpochMs, Sha256 } from "../../../schemas/values.ts";

export const InteractionState = z.discriminatedUnion("status", [
  z.object({ status: z.literal("none") }),
  z.object({
    status: z.literal("open"),
    browserHash: Sha256,
    expiresAt: EpochMs,
    record: z.record(z.string(), z.unknown()),
  }),
]);
export type InteractionState = z.infer<typeof InteractionState>;
