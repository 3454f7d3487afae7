/** The contract of the authorization server's keys, one for a whole cluster. The key is "main". */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";

export const OAUTH_KEYS_KEY = "main";

/** A private key for signatures, as a JWK (RFC 7517). */
const SigningKey = z.object({
  kid: z.string().min(1).max(64),
  jwk: z.record(z.string(), z.string()).meta({ secret: true }),
});

export const OAuthKeys = z.object({
  /** Oldest first. */
  signing: z.array(SigningKey.extend({ createdAt: EpochMs })),
  /** Secret for form marks and cookies, which only this server reads. */
  secret: z.string().meta({ secret: true }),
});
export type OAuthKeys = z.infer<typeof OAuthKeys>;

export const oauthKeys = defineContract({
  kind: "oauth-keys",
  messages: {
    /** Null until somebody offered some. */
    get: { input: z.object({}), reply: z.object({ keys: OAuthKeys.nullable() }) },
    /**
     * Adds a key where `after` is the newest there is, or none is there and it is null. Everyone hears what holds, the
     * one who came late too. The secret counts the first time.
     */
    offer: {
      input: z.object({
        after: z.string().nullable(),
        key: SigningKey,
        secret: z.string().min(43).max(64).meta({ secret: true }),
      }),
      reply: OAuthKeys,
    },
  },
  live: z.object({ change: z.literal("keys") }),
});
