/** State of an account's request counter, in memory only. */
import { z } from "zod";
import { EpochMs } from "../../../schemas/values.ts";

export const RequestLimitState = z.object({ windowEndsAt: EpochMs, taken: z.int().min(0) });
