/**
 * The contract of the guard against guessing of passwords. The key is an e-mail address, whether or not somebody has
 * signed up with it.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";

/** The source of an attempt: a network, a known browser of the person, or a session of theirs. */
const Source = z.object({ from: z.string().min(1).max(64) });

export const loginGuard = defineContract({
  kind: "login-guard",
  messages: {
    /**
     * Counts a try before its password is checked, or says how long this source must wait. A known browser or session
     * waits only for its own tries. All other sources also wait for each other's tries, once there are many.
     */
    take: {
      input: Source.extend({ isKnown: z.boolean() }),
      /** 0 means that the attempt is counted and may proceed. */
      reply: z.object({ waitMs: z.int().min(0) }),
    },
    /** The password was right: the tries of this source are forgotten. */
    passed: { input: Source, reply: z.object({}) },
    /** Reminder: removes tries that are too old to count. */
    forget: { input: z.object({}) },
  },
});
