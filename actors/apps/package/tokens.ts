/** Who somebody is who comes with a token of the platform; and whether two texts are the same, in a time that tells nothing. */
import { createHash, timingSafeEqual as isSame } from "node:crypto";
import { APP_TOKEN_CHARS_MAX } from "../../../schemas/apps/app-limits.ts";
import type { HostLink } from "../process/host-link.ts";
import { running } from "./current-agent.ts";

export interface TokenIdentity {
  /** `api`: a token of an account; `oauth`: an access token that a client was given by a person. */
  kind: "api" | "oauth";
  /** Of an API token, or of the grant that an access token belongs to. It opens nothing. */
  id: string;
  /** In whose name: always there of an access token, and of what was made with one. */
  userId?: string | undefined;
  clientId?: string | undefined;
  /** Accounts that it opens. */
  accountIds: string[];
  /** Of an access token what the person allowed its client; of an API token its permissions. */
  scopes: string[];
  /** What it may do in the app's own account now; empty where it does not open that. */
  permissions: string[];
  /** Epoch ms. */
  expiresAt?: number | undefined;
}

/** RFC 6750 section 2.1. */
const BEARER = /^Bearer +(\S+)$/i;

let host: Pick<HostLink, "operate"> | undefined;

/** @internal */
export function verifyThrough(link: Pick<HostLink, "operate">): void {
  host = link;
}

/**
 * Whose token this is, an API token or an OAuth access token, or that of a request's `Authorization: Bearer`. Null where
 * there is none, or it is good no more. Anybody may have a token: which accounts, people or clients are let in is the app's
 * to say.
 */
export async function verifyToken(
  from: string | Request | null | undefined,
): Promise<TokenIdentity | null> {
  const token = typeof from === "string" ? from : bearerOf(from);
  if (token === undefined || token === "" || token.length > APP_TOKEN_CHARS_MAX) return null;
  if (host === undefined) throw new Error("Cannot verify a token: the app has not started");
  const { open } = running() ?? {};
  const result = await host.operate(
    { type: "identify", token },
    open && { number: open.number, after: open.gate.after() },
  );
  return result.type === "identified" ? (result.identity ?? null) : null;
}

function bearerOf(request: Request | null | undefined): string | undefined {
  return BEARER.exec(request?.headers.get("authorization") ?? "")?.[1];
}

/**
 * Whether both are the same, as text in UTF-8 or as bytes: for signatures and other secrets, of any length. What differs
 * takes as long as what does not, so nobody learns how much of a guess was right.
 */
export function timingSafeEqual(
  one: string | ArrayBuffer | ArrayBufferView,
  other: string | ArrayBuffer | ArrayBufferView,
): boolean {
  return isSame(hashOf(one), hashOf(other));
}

/** Of one length, whatever it is of. */
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
