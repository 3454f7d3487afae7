/**
 * The contract of what holds back who guesses the password of one e-mail address, whether or not it is anybody's. The
 * key is
 * the address.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";

/** The source of an attempt: a network, a known browser of the person, or a session of theirs. */
const Source = z.object({ from: z.string().min(1).max(64) });

export const loginGuard = defineContract({
  kind: "login-guard",
  messages: {
    /**
     * Counts a try before its password is looked at, or says how long this source must wait. What is known waits for
     * its
     * own tries alone; all others also for each other's, once there are many.
     */
    take: {
      input: Source.extend({ isKnown: z.boolean() }),
      /** 0: it is counted. */
      reply: z.object({ waitMs: z.int().min(0) }),
    },
    /** The password was right: what this source has tried is forgotten. */
    passed: { input: Source, reply: z.object({}) },
    /** Reminder. */
    forget: { input: z.object({}) },
  },
});
