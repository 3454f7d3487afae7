/** Hashes passwords with argon2id (RFC 9106). The stored text contains cost, salt and hash. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { PasswordHasher, type PasswordSource } from "./password-hasher.ts";

/** The cost that OWASP recommends: 19 MiB, two passes, one thread. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 };
const HASH_BYTES = 32;
const ARGON2 = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]+)\$([\w+/]+)$/;

const hasher = new PasswordHasher();

/**
 * Returns the hash as a PHC string, which contains the cost. So old hashes stay readable after a change of the cost.
 * The hashes of one source and of one network are limited.
 */
export async function hashPassword(password: string, source: PasswordSource): Promise<string> {
  const salt = randomBytes(16);
  const hash = await argon2Of({ password, salt, source }, COST);
  const { memory, passes, parallelism } = COST;
  const cost = `m=${memory},t=${passes},p=${parallelism}`;
  return `$argon2id$v=19$${cost}$${unpadded(salt)}$${unpadded(hash)}`;
}

/** Returns whether a stored hash used another function or cost than new hashes do. */
export function isDated(stored: string): boolean {
  const { memory, passes, parallelism } = COST;
  return !stored.startsWith(`$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$`);
}

/** Returns whether a password has the stored hash. For the source see hashPassword(). */
export async function passwordMatches(
  password: string,
  stored: string,
  source: PasswordSource,
): Promise<boolean> {
  const [, memory, passes, parallelism, salt = "", hash = ""] = ARGON2.exec(stored) ?? [];
  if (memory === undefined) return scryptMatches(password, stored, source);
  const cost = {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  };
  const actual = await argon2Of({ password, salt: Buffer.from(salt, "base64"), source }, cost);
  return timingSafeEqual(actual, Buffer.from(hash, "base64"));
}

/**
 * Hashes the password for no user and resolves to false. This takes as long as a real check, so that the time does
 * not reveal that an e-mail address is unknown.
 */
export async function matchNoPassword(password: string, source: PasswordSource): Promise<false> {
  await argon2Of({ password, salt: randomBytes(16), source }, COST);
  return false;
}

/** Checks a password against a hash of the first release: `scrypt$<N>$<r>$<p>$<salt>$<hash>`. */
async function scryptMatches(
  password: string,
  stored: string,
  source: PasswordSource,
): Promise<boolean> {
  const [scheme, N, r, p, salt = "", hash = ""] = stored.split("$");
  if (scheme !== "scrypt") throw new Error(`Cannot check password: its scheme is "${scheme}"`);
  const numbers = { N: Number(N), r: Number(r), p: Number(p) };
  const work = {
    scheme: "scrypt",
    password: normal(password),
    salt: Buffer.from(salt, "base64url"),
    bytes: HASH_BYTES,
    cost: { ...numbers, maxmem: 256 * numbers.N * numbers.r },
  } as const;
  const actual = await hasher.hash(work, source);
  return timingSafeEqual(actual, Buffer.from(hash, "base64url"));
}

function argon2Of(
  { password, salt, source }: { password: string; salt: Buffer; source: PasswordSource },
  cost: typeof COST,
): Promise<Uint8Array> {
  const message = normal(password);
  const parameters = { ...cost, nonce: salt, message, tagLength: HASH_BYTES };
  return hasher.hash({ scheme: "argon2id", parameters }, source);
}

/** Different Unicode spellings of the same character must give the same password (RFC 8265 section 4.2.2). */
const normal = (password: string) => password.normalize("NFC");

const unpadded = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64").replace(/=+$/, "");
