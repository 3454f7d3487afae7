/** Passwords as they are kept: scrypt (RFC 7914) with its cost and salt beside the hash. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

const COST = { N: 2 ** 16, r: 8, p: 1 };
const HASH_BYTES = 32;

/** `scrypt$<N>$<r>$<p>$<salt>$<hash>`, so that a later cost leaves old hashes readable. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await hashOf(password, salt, COST);
  const parts = [COST.N, COST.r, COST.p, salt.toString("base64url"), hash.toString("base64url")];
  return ["scrypt", ...parts].join("$");
}

export async function passwordMatches(password: string, stored: string): Promise<boolean> {
  const [scheme, N, r, p, salt = "", hash = ""] = stored.split("$");
  if (scheme !== "scrypt") throw new Error(`Cannot check password: its scheme is "${scheme}"`);
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  const actual = await hashOf(password, Buffer.from(salt, "base64url"), cost);
  return timingSafeEqual(actual, Buffer.from(hash, "base64url"));
}

function hashOf(password: string, salt: Buffer, cost: typeof COST): Promise<Buffer> {
  // Two spellings of one character are one password (RFC 8265 section 4.2.2).
  const normal = password.normalize("NFC");
  return derive(normal, salt, HASH_BYTES, { ...cost, maxmem: 256 * cost.N * cost.r });
}
