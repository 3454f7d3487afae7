/**
 * Messages of the actor that limits guesses of passwords. The key is an e-mail address, whether or not a person has
 * signed up with it.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";

/** The source of an attempt: a network, a known browser of the person, or a session of the person. */
const Source = z.object({ from: z.string().min(1).max(64) });

export const loginGuard = defineContract({
  kind: "login-guard",
  messages: {
    /**
     * Counts an attempt before its password is checked, or returns how long this source must wait. A known browser or
     * session waits only because of its own attempts. All other sources also wait because of each other's attempts,
     * if there are many.
     */
    take: {
      input: Source.extend({ isKnown: z.boolean() }),
      /** 0 means that the attempt is counted and may proceed. */
      reply: z.object({ waitMs: z.int().min(0) }),
    },
    /** Sent after a right password: the attempts of this source are no longer counted. */
    passed: { input: Source, reply: z.object({}) },
    /** Sent if the password was not checked: the attempt that was counted last is no longer counted. */
    unchecked: { input: Source, reply: z.object({}) },
    /** Reminder: removes attempts that are too old to count. */
    forget: { input: z.object({}) },
  },
});
