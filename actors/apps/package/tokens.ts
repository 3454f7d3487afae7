/** Identifies the owner of a token of the platform, and compares texts in constant time. */
import { createHash, timingSafeEqual as isSame } from "node:crypto";
import { APP_TOKEN_CHARS_MAX } from "../../../schemas/apps/limits.ts";

export interface TokenIdentity {
  /** `api`: a token of an account; `oauth`: an access token that a client was given by a person. */
  kind: "api" | "oauth";
  /** Id of an API token, or of the grant of an access token. The id opens nothing. */
  id: string;
  /** The user whom the token acts for. Always set for an access token and for a token made with one. */
  userId?: string | undefined;
  clientId?: string | undefined;
  /** Accounts that it opens. */
  accountIds: string[];
  /** The scopes that the person allowed the client of an access token, or the permissions of an API token. */
  scopes: string[];
  /** The token's permissions in the app's own account now; empty if it does not open that account. */
  permissions: string[];
  /** Epoch ms. */
  expiresAt?: number | undefined;
}

/** RFC 6750 section 2.1. */
const BEARER = /^Bearer +(\S+)$/i;

/** Resolves with null for a token that is not valid. @internal */
export type IdentifyToken = (token: string) => Promise<TokenIdentity | null>;

let identify: IdentifyToken | undefined;

/** @internal */
export function verifyThrough(identifier: IdentifyToken): void {
  identify = identifier;
}

/**
 * Identifies an API token or OAuth access token, or the one of a request's `Authorization: Bearer`. Returns null when
 * there is none or it is not valid. Anybody may have a token, so the app must decide which accounts, people or
 * clients it admits.
 */
export async function verifyToken(
  from: string | Request | null | undefined,
): Promise<TokenIdentity | null> {
  const token = typeof from === "string" ? from : bearerOf(from);
  if (token === undefined || token === "" || token.length > APP_TOKEN_CHARS_MAX) return null;
  if (identify === undefined) throw new Error("Cannot verify a token: the app has not started");
  return identify(token);
}

function bearerOf(request: Request | null | undefined): string | undefined {
  return BEARER.exec(request?.headers.get("authorization") ?? "")?.[1];
}

/**
 * Whether both are the same, as text in UTF-8 or as bytes: for signatures and other secrets, of any length. What
 * differs takes as long as what does not, so nobody learns how much of a guess was right.
 */
export function timingSafeEqual(
  one: string | ArrayBuffer | ArrayBufferView,
  other: string | ArrayBuffer | ArrayBufferView,
): boolean {
  return isSame(hashOf(one), hashOf(other));
}

/** A digest has one length for any text. */
function hashOf(value: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof value === "string") return createHash("sha256").update(value).digest();
  const isView = ArrayBuffer.isView(value);
  if (!isView && !(value instanceof ArrayBuffer)) {
    throw new TypeError("Cannot compare: expected text or bytes");
  }
  const bytes = isView
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
  return createHash("sha256").update(bytes).digest();
}
