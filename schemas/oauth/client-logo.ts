/** Messages of the actor that stores our copy of an OAuth client's logo. The key is the client_id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Sha256 } from "../values.ts";
import { LOGO_BYTES_MAX } from "./limits.ts";
import { LOGO_TYPES } from "./logo-fetch.ts";

const BASE64_CHARS_MAX = 4 * Math.ceil(LOGO_BYTES_MAX / 3);

export const Logo = z.object({
  type: z.enum(LOGO_TYPES),
  /** SHA-256 of the picture's bytes. */
  hash: Sha256,
  base64: z.base64().max(BASE64_CHARS_MAX),
});
export type Logo = z.infer<typeof Logo>;

const Nothing = z.object({});

export const clientLogo = defineContract({
  kind: "client-logo",
  messages: {
    /**
     * Sent by the client's actor whenever a request sets logo_uri, also to the same address. Null: the client has no
     * logo.
     */
    follow: { input: z.object({ uri: z.string().nullable() }) },
    /** Sent by the worker that fetched the logo. If `logo` is absent, the attempt has failed. */
    fetched: {
      input: z.object({ uri: z.string(), attempt: z.int().min(1), logo: Logo.optional() }),
    },
    /**
     * Reminder: fetches the logo again after a failed attempt, or if the client set it during a fetch without a
     * result.
     */
    retry: { input: Nothing },
    /** Replies with the hash of the copy of this address, if there is one. */
    find: { input: z.object({ uri: z.string() }), reply: z.object({ hash: Sha256.optional() }) },
    /** Returns the copy with this hash. Refuses as `not_found` if there is none. */
    read: { input: z.object({ hash: Sha256 }), reply: Logo },
  },
});
