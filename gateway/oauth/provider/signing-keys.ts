/** Loads the authorization server's keys, and creates the first key and its successors. */
import { generateKeyPair, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { KEY_LEAD_MS } from "../../../schemas/oauth/limits.ts";
import { OAUTH_KEYS_KEY, type OAuthKeys, oauthKeys } from "../../../schemas/oauth/oauth-keys.ts";

/** Time for which a key signs before its successor takes over. The successor is created KEY_LEAD_MS earlier. */
export const KEY_SIGNS_MS = 90 * 86_400_000;

const makePair = promisify(generateKeyPair);

/** The algorithm that every OpenID Connect client supports (OpenID Connect Core section 15.1). */
const ALGORITHM = "RS256";
const KEY_BITS = 2_048;

export interface ServerKeys {
  /** The key set. Its first key is the one that signs. */
  jwks: { keys: Record<string, string>[] };
  secret: string;
}

/** Loads the current keys. Adds a successor if the newest key was created KEY_SIGNS_MS ago. */
export async function loadKeys(actors: ActorClient, now: number): Promise<ServerKeys> {
  const { keys } = await actors.call(oauthKeys, OAUTH_KEYS_KEY, "get", {});
  const newest = keys?.signing.at(-1);
  const isDue = !newest || now - newest.createdAt >= KEY_SIGNS_MS;
  return arranged(keys && !isDue ? keys : await offer(actors, newest?.kid ?? null), now);
}

async function offer(actors: ActorClient, after: string | null): Promise<OAuthKeys> {
  const { privateKey } = await makePair("rsa", { modulusLength: KEY_BITS });
  const key = {
    kid: randomBytes(8).toString("hex"),
    jwk: texts(privateKey.export({ format: "jwk" })),
  };
  const secret = randomBytes(32).toString("base64url");
  return actors.call(oauthKeys, OAUTH_KEYS_KEY, "offer", { after, key, secret });
}

/**
 * Returns the keys with the signing key first: the newest key that has existed for KEY_LEAD_MS, so that clients have
 * fetched it. If there is none, it is the oldest key.
 */
function arranged({ signing, secret }: OAuthKeys, now: number): ServerKeys {
  const [first] = signing;
  const seen = signing.filter((key) => key === first || now - key.createdAt >= KEY_LEAD_MS);
  const signs = seen.at(-1);
  const ordered = [...signing].sort(
    (one, other) => Number(other === signs) - Number(one === signs),
  );
  const keys = ordered.map(({ kid, jwk }) => ({ ...jwk, kid, use: "sig", alg: ALGORITHM }));
  return { jwks: { keys }, secret };
}

function texts(jwk: object): Record<string, string> {
  return Object.fromEntries(Object.entries(jwk).map(([name, value]) => [name, String(value)]));
}
