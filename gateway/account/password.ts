/** Hashes passwords with argon2id (RFC 9106). The stored text contains cost, salt and hash. */
import {
  type Argon2Parameters,
  argon2,
  randomBytes,
  type ScryptOptions,
  scrypt,
  timingSafeEqual,
} from "node:crypto";
import { promisify } from "node:util";
import { ActorError } from "../../schemas/errors.ts";

/**
 * Limits how many passwords are hashed at the same time, and how many wait. Each hash takes 19 MiB and 0.1 s of a
 * core.
 */
export const PASSWORD_HASHES_AT_ONCE = 4;
export const PASSWORD_HASHES_WAITING_MAX = 64;

const deriveArgon2 = promisify<"argon2id", Argon2Parameters, NonSharedBuffer>(argon2);
const deriveScrypt = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

/** The cost that OWASP recommends: 19 MiB, two passes, one thread. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 };
const HASH_BYTES = 32;
const ARGON2 = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]+)\$([\w+/]+)$/;

/**
 * Returns the hash as a PHC string, which contains the cost. So old hashes stay readable after a change of the cost.
 */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await argon2Of(password, salt, COST);
  const { memory, passes, parallelism } = COST;
  const cost = `m=${memory},t=${passes},p=${parallelism}`;
  return `$argon2id$v=19$${cost}$${unpadded(salt)}$${unpadded(hash)}`;
}

/** Returns whether a stored hash used another function or cost than new hashes do. */
export function isDated(stored: string): boolean {
  const { memory, passes, parallelism } = COST;
  return !stored.startsWith(`$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$`);
}

export async function passwordMatches(password: string, stored: string): Promise<boolean> {
  const [, memory, passes, parallelism, salt = "", hash = ""] = ARGON2.exec(stored) ?? [];
  if (memory === undefined) return scryptMatches(password, stored);
  const cost = {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  };
  const actual = await argon2Of(password, Buffer.from(salt, "base64"), cost);
  return timingSafeEqual(actual, Buffer.from(hash, "base64"));
}

/**
 * Hashes the password for no user and resolves to false. This takes as long as a real check, so that the time does
 * not reveal that an e-mail address is unknown.
 */
export async function matchNoPassword(password: string): Promise<false> {
  await argon2Of(password, randomBytes(16), COST);
  return false;
}

/** Checks a password against a hash of the first release: `scrypt$<N>$<r>$<p>$<salt>$<hash>`. */
async function scryptMatches(password: string, stored: string): Promise<boolean> {
  const [scheme, N, r, p, salt = "", hash = ""] = stored.split("$");
  if (scheme !== "scrypt") throw new Error(`Cannot check password: its scheme is "${scheme}"`);
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  const options = { ...cost, maxmem: 256 * cost.N * cost.r };
  const bytes = Buffer.from(salt, "base64url");
  const actual = await slots.run(() => deriveScrypt(normal(password), bytes, HASH_BYTES, options));
  return timingSafeEqual(actual, Buffer.from(hash, "base64url"));
}

function argon2Of(password: string, nonce: Buffer, cost: typeof COST): Promise<Buffer> {
  const parameters = { ...cost, nonce, message: normal(password), tagLength: HASH_BYTES };
  return slots.run(() => deriveArgon2("argon2id", parameters));
}

/** Different Unicode spellings of the same character must give the same password (RFC 8265 section 4.2.2). */
const normal = (password: string) => password.normalize("NFC");

const unpadded = (bytes: Buffer) => bytes.toString("base64").replace(/=+$/, "");

/** Limits concurrent hashes: each takes memory and a core, and anybody can cause one. */
class Slots {
  #free = PASSWORD_HASHES_AT_ONCE;
  readonly #waiting: (() => void)[] = [];

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else if (this.#waiting.length >= PASSWORD_HASHES_WAITING_MAX) {
      throw new ActorError("busy", "Cannot check password: too many are checked now");
    } else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}

const slots = new Slots();
