/** Identifies the owner of a token of the platform, and compares texts in constant time. */
import { createHash, timingSafeEqual as isSame } from "node:crypto";
import { APP_TOKEN_CHARS_MAX } from "../../../schemas/apps/limits.ts";

export interface TokenIdentity {
  /** `api`: a token of an account; `oauth`: an access token that a user granted to a client. */
  kind: "api" | "oauth";
  /** Id of an API token, or of the grant of an access token. The id is not a secret. */
  id: string;
  /** The user whom the token acts for. Always set for an access token and for a token made with one. */
  userId?: string | undefined;
  clientId?: string | undefined;
  /** Ids of the accounts that the token can use. */
  accountIds: string[];
  /** The scopes that the user granted to the client of an access token, or the permissions of an API token. */
  scopes: string[];
  /** The token's current permissions in the app's own account; empty if it cannot use that account. */
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
 * Identifies the owner of an API token or OAuth access token, given as text or as a request with `Authorization:
 * Bearer`. Returns null if the token is missing or invalid. Anybody may own a token, so the app must check which
 * accounts, people or clients it admits.
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
 * Returns whether two values are equal, as UTF-8 text or as bytes. The comparison takes constant time for values of
 * any length, so its time does not reveal how much of a guess was right. Use it for signatures and other secrets.
 */
export function timingSafeEqual(
  one: string | ArrayBuffer | ArrayBufferView,
  other: string | ArrayBuffer | ArrayBufferView,
): boolean {
  return isSame(hashOf(one), hashOf(other));
}

/** Compares digests, because they have the same length for any text. */
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
