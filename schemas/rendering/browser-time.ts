/**
 * Messages of the actor that counts the browser time of an account and enforces the limit of a day. The key is the
 * account's id. Browser workers call this kind, so no message may change other things: the rights of a worker on the
 * bus cover all messages of a kind.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";

/** Browser time of one UTC day. */
export const UsageDay = z.object({ date: z.iso.date(), ms: z.int().min(0), tasks: z.int().min(0) });
export type UsageDay = z.infer<typeof UsageDay>;

export const browserTime = defineContract({
  kind: "browser-time",
  messages: {
    /**
     * Admits a rendering task. Refuses if the account has used its browser time of this UTC day; the limit 0 means no
     * limit.
     */
    admit: {
      input: z.object({
        limitMs: z.int().min(0),
        /** Browser time of this account that the calling worker has used but not reported yet. */
        untoldMs: z.int().min(0).optional(),
      }),
      reply: z.object({ usedMs: z.int().min(0) }),
    },
    /**
     * Reports used browser time, once for each task, also for a failed one. A long task may report parts of its time
     * earlier, each part with its own id.
     */
    used: {
      input: z.object({
        ms: z.int().min(0),
        taskId: z.string().min(1).max(64),
        isPart: z.literal(true).optional(),
      }),
    },
    /** A reminder that removes the memory of tasks whose reports are not repeated any more. */
    dropCounted: { input: z.object({}) },
    getUsage: {
      input: z.object({}),
      reply: z.object({ today: UsageDay, resetsAt: EpochMs, days: z.array(UsageDay) }),
    },
  },
});
