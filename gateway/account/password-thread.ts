/** A thread of PasswordHasher. It computes one hash at a time. */
import { type Argon2Parameters, argon2Sync, type ScryptOptions, scryptSync } from "node:crypto";
import { getPriority, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";

/** Priority of the thread, from 0 (normal) to 19. At 10 it yields to every other thread, but it is never starved. */
const NICENESS = 10;

/** One hash to compute, as the functions of node:crypto take it. */
export type HashWork =
  | { scheme: "argon2id"; parameters: Argon2Parameters }
  | { scheme: "scrypt"; password: string; salt: Uint8Array; bytes: number; cost: ScryptOptions };

export type HashOutcome =
  | { kind: "hash"; hash: Uint8Array }
  /** The stored hash names a cost that the function refuses. */
  | { kind: "failed"; reason: string };

// On Linux a priority belongs to one thread. Elsewhere this call would slow down the whole process.
if (process.platform === "linux") yieldToOthers();

parentPort?.on("message", (work: HashWork) => {
  parentPort?.postMessage(outcomeOf(work));
});

function yieldToOthers(): void {
  try {
    // The process may have a lower priority already, which an ordinary user cannot raise.
    if (getPriority() < NICENESS) setPriority(NICENESS);
  } catch {
    // A sandbox may forbid the call. Passwords are then hashed with the priority of the process.
  }
}

function outcomeOf(work: HashWork): HashOutcome {
  try {
    return { kind: "hash", hash: hashOf(work) };
  } catch (error) {
    return { kind: "failed", reason: String(error) };
  }
}

function hashOf(work: HashWork): Uint8Array {
  if (work.scheme === "argon2id") return argon2Sync("argon2id", work.parameters);
  return scryptSync(work.password, work.salt, work.bytes, work.cost);
}
