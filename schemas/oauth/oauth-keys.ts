/** Messages of the actor that stores the authorization server's keys, one for a whole cluster. The key is "main". */
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
  /** The secret for form marks and cookies. Only this server reads them. */
  secret: z.string().meta({ secret: true }),
});
export type OAuthKeys = z.infer<typeof OAuthKeys>;

export const oauthKeys = defineContract({
  kind: "oauth-keys",
  messages: {
    /** Returns the keys; null until a gateway has offered the first ones. */
    get: { input: z.object({}), reply: z.object({ keys: OAuthKeys.nullable() }) },
    /**
     * Adds a key if `after` is the id of the newest key, or if `after` is null and there is no key. Always replies
     * with the valid keys, even if another gateway's offer came first. The secret is used only in the first offer.
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
