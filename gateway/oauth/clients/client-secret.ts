/** Makes and checks client secrets: `tlcs_` and 32 random bytes. Only the hash of a secret is stored. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** The prefix with which secret scanners recognise a secret that was published by mistake. */
const PREFIX = "tlcs_";
const SECRET_BYTES = 32;

interface NewClientSecret {
  text: string;
  hash: string;
  lastFour: string;
}

export function newClientSecret(): NewClientSecret {
  const text = PREFIX + randomBytes(SECRET_BYTES).toString("base64url");
  return { text, hash: hashOf(text), lastFour: text.slice(-4) };
}

/** Returns the secret that matches the text. Takes the same time for every text. */
export function matchingSecret<S extends { hash: string }>(
  secrets: readonly S[],
  text: string,
): S | undefined {
  const expected = Buffer.from(hashOf(text), "hex");
  const matches = secrets.map(({ hash }) => timingSafeEqual(Buffer.from(hash, "hex"), expected));
  return secrets[matches.indexOf(true)];
}

/** A plain hash is enough: nobody guesses 32 random bytes. */
function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
