/**
 * The key that encrypts the stored request of a job. The gateway creates one for each job, and the job's row stores
 * it in sealed form. A process of the role `actors` unseals it for the worker that runs the job. The worker loads
 * untrusted pages, so it must not hold the key that seals all secrets.
 */
import { z } from "zod";
import { SEALED_CHARS_MAX } from "../apps/limits.ts";
import { Id } from "../values.ts";

/**
 * A NATS core subject. All processes of the role `actors` subscribe to it as a queue group, so one of them answers
 * each request.
 */
export const REQUEST_KEY_SUBJECT = "request-key";
export const REQUEST_KEY_QUEUE = "request-key";

export const RequestKeyQuestion = z.object({
  account: Id,
  job: Id,
  sealed: z.string().max(SEALED_CHARS_MAX),
});
export type RequestKeyQuestion = z.infer<typeof RequestKeyQuestion>;

export const RequestKeyAnswer = z.union([
  z.object({ key: z.string() }),
  /** No key of the platform can unseal the request's key. */
  z.object({ isSealed: z.literal(true) }),
]);
export type RequestKeyAnswer = z.infer<typeof RequestKeyAnswer>;

/**
 * The name under which a job's key is sealed. It differs for each job, and contains a slash, which names of secrets
 * cannot contain.
 */
export const requestKeyName = (job: string) => `render-job/${job}`;

const KEY_BYTES = 32;
const NONCE_BYTES = 12;

/** Returns a new key in base64. */
export const newRequestKey = () =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(KEY_BYTES))).toString("base64");

/** Encrypts a request with AES-256-GCM: the nonce, then the ciphertext with its tag. */
export async function encryptRequest(request: Uint8Array, key: string): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const encrypted = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv },
    await readKey(key, "encrypt"),
    Uint8Array.from(request),
  );
  return Buffer.concat([iv, new Uint8Array(encrypted)]);
}

/** Decrypts a request. Rejects if the bytes were not encrypted with this key, or were changed. */
export async function decryptRequest(encrypted: Uint8Array, key: string): Promise<Uint8Array> {
  const bytes = Uint8Array.from(encrypted);
  const iv = bytes.subarray(0, NONCE_BYTES);
  const request = await crypto.subtle.decrypt(
    { name: "AES-GCM", iv },
    await readKey(key, "decrypt"),
    bytes.subarray(NONCE_BYTES),
  );
  return new Uint8Array(request);
}

const readKey = (key: string, use: "encrypt" | "decrypt") =>
  crypto.subtle.importKey("raw", Buffer.from(key, "base64"), "AES-GCM", false, [use]);
