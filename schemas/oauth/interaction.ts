/** The contract of an authorization request that waits for a person to sign in or decide. The key is its uid. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Sha256 } from "../values.ts";

/** Bytes of a stored authorization request: several times the longest URL of an HTTP server. */
export const INTERACTION_BYTES_MAX = 64 * 1024;

const Nothing = z.object({});
/** Hash of the browser in which the request began. No other browser can continue it. */
const Browser = z.object({ browserHash: Sha256 });

const InteractionRecord = z
  .record(z.string(), z.unknown())
  .refine((record) => Buffer.byteLength(JSON.stringify(record)) <= INTERACTION_BYTES_MAX, {
    error: `Expected at most ${INTERACTION_BYTES_MAX} bytes`,
  });

export const interaction = defineContract({
  kind: "interaction",
  messages: {
    /** Begins it, or keeps how far it is. */
    put: {
      input: Browser.extend({ record: InteractionRecord, expiresAt: EpochMs }),
      reply: Nothing,
    },
    /** `not_found` when it is over, or began in another browser. */
    get: { input: Browser, reply: z.object({ record: InteractionRecord }) },
    end: { input: Nothing, reply: Nothing },
    /** Reminder. */
    expire: { input: Nothing },
  },
});
