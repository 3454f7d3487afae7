/** What is kept of an account's requests, in memory alone. */
import { z } from "zod";
import { EpochMs } from "../../../schemas/values.ts";

export const RequestLimitState = z.object({ windowEndsAt: EpochMs, taken: z.int().min(0) });
