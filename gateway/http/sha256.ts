/** Hashes tokens and cookies, so that stored values give no access. */
import { hash } from "node:crypto";

/** Returns the SHA-256 of a text in hex. A plain hash is enough for tokens: nobody guesses 32 random bytes. */
export const sha256 = (text: string) => hash("sha256", text);
