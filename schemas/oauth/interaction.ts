/**
 * Messages of the actor that stores an authorization request while it waits for a person to sign in or decide. The
 * key is the uid of the request.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Sha256 } from "../values.ts";

/** Limits the bytes of a stored authorization request: several times the longest URL that HTTP servers accept. */
export const INTERACTION_BYTES_MAX = 64 * 1024;

const Nothing = z.object({});
/** The hash of the id of the browser in which the request began. No other browser can continue the request. */
const Browser = z.object({ browserHash: Sha256 });

const InteractionRecord = z
  .record(z.string(), z.unknown())
  .refine((record) => Buffer.byteLength(JSON.stringify(record)) <= INTERACTION_BYTES_MAX, {
    error: `Expected at most ${INTERACTION_BYTES_MAX} bytes`,
  });

export const interaction = defineContract({
  kind: "interaction",
  messages: {
    /** Stores a new request, or the progress of an existing one. */
    put: {
      input: Browser.extend({ record: InteractionRecord, expiresAt: EpochMs }),
      reply: Nothing,
    },
    /** Returns the request. Refuses as `not_found` if it has ended, or began in another browser. */
    get: { input: Browser, reply: z.object({ record: InteractionRecord }) },
    end: { input: Nothing, reply: Nothing },
    /** Reminder: deletes the request when its time is over. */
    expire: { input: Nothing },
  },
});
