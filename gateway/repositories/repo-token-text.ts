/** A repository's token as text: `art_v1_<40 hex>?expires=<seconds>`, as in the public API. Only its hash is kept. */
import { createHash, randomBytes } from "node:crypto";

const SECRET_BYTES = 20;

export function newRepoToken(): { secret: string; secretHash: string } {
  const secret = `art_v1_${randomBytes(SECRET_BYTES).toString("hex")}`;
  return { secret, secretHash: hashOf(secret) };
}

/** The expiry in the text is for people. The repository's record decides. */
export const repoTokenText = (secret: string, expiresAt: number) =>
  `${secret}?expires=${Math.floor(expiresAt / 1_000)}`;

/** Returns the hash of the secret alone, because clients may send the whole text or only the secret. */
export const repoTokenHash = (text: string) => hashOf(text.split("?", 1)[0] ?? "");

/** A plain hash is enough, because nobody can guess 20 random bytes. */
const hashOf = (secret: string) => createHash("sha256").update(secret).digest("hex");
