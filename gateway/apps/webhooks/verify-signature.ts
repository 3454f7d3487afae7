/** Checks that an event was signed recently with one of the secrets. Compares in constant time. */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { SignatureScheme } from "./signature-schemes.ts";
import type { SignedEvent } from "./signed-event.ts";

/** Returns undefined for a valid signature, and otherwise the reason, which goes to the log and not to the sender. */
export function signatureFault(
  scheme: SignatureScheme,
  secrets: readonly string[],
  event: SignedEvent,
  now: number,
): string | undefined {
  const header = signatureHeader(scheme, event.headers);
  if (header === undefined) return missingHeader(scheme);
  const texts = scheme.signed(event, header);
  if (texts === undefined) return "a signed field is missing";
  const given = (scheme.given?.(header) ?? [header]).map((text) => bytesOf(text, scheme.encoding));
  let holds = false;
  for (const key of secrets.flatMap((secret) => scheme.keys?.(secret) ?? [secret])) {
    // Anybody can sign with an empty key, so it is skipped.
    if (key.length === 0) continue;
    for (const parts of texts) {
      const hmac = createHmac(scheme.algorithm, key);
      for (const part of parts) hmac.update(part);
      const expected = hmac.digest();
      // The loop never ends early, so that its time does not reveal the number of secrets.
      for (const one of given) {
        if (one.length === expected.length && timingSafeEqual(one, expected)) holds = true;
      }
    }
  }
  if (!holds) return "no secret gives its signature";
  return timeFault(scheme, event, { header, now });
}

/** Checks the time of signing. It may be in the body, which is parsed only after its signature was found valid. */
function timeFault(
  { toleranceS, signedAt }: SignatureScheme,
  event: SignedEvent,
  { header, now }: { header: string; now: number },
): string | undefined {
  if (toleranceS === undefined) return undefined;
  const at = signedAt?.(event, header);
  if (at === undefined || !Number.isFinite(at)) return "its time of signing is missing";
  const seconds = Math.abs(now / 1_000 - at);
  return seconds > toleranceS ? `it was signed ${Math.round(seconds)} s from now` : undefined;
}

/** Returns the value of the header with the signature; undefined if it is absent or empty. */
export const signatureHeader = (
  { headers: names }: SignatureScheme,
  headers: SignedEvent["headers"],
): string | undefined => names.map((name) => headers.get(name)).find((one) => one);

/** The reason for the log if there is no signature. */
export const missingHeader = ({ headers }: SignatureScheme) => `there is no ${headers[0]}`;

/**
 * Decodes a signature. Returns an empty buffer for invalid text, because Buffer itself would skip invalid characters.
 */
function bytesOf(text: string, encoding: "hex" | "base64"): Buffer {
  const isWhole =
    encoding === "hex"
      ? /^(?:[0-9a-f]{2})+$/i.test(text)
      : /^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.length % 4 === 0;
  return isWhole ? Buffer.from(text, encoding) : Buffer.alloc(0);
}
