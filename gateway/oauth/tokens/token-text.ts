/**
 * Makes and parses the texts of codes and tokens: `tl_at_<grant>_<secret>`. The grant's id finds the actor that
 * stores the token. The hash of the whole text proves that the caller has the token.
 */
import { randomBytes } from "node:crypto";
import type { TokenKind } from "../../../schemas/oauth/oauth-grant.ts";
import { sha256 } from "../../http/sha256.ts";

/** The prefix shows the kind of token to people and secret scanners who find a leaked one. */
const PREFIXES = { code: "tl_ac_", access: "tl_at_", refresh: "tl_rt_" } as const;
const KINDS = new Map<string, TokenKind>([
  [PREFIXES.code, "code"],
  [PREFIXES.access, "access"],
  [PREFIXES.refresh, "refresh"],
]);
const TOKEN = /^(tl_(?:ac|at|rt)_)([0-9a-f]{32})_[\w-]{43}$/;
const SECRET_BYTES = 32;

export interface TokenAddress {
  kind: TokenKind;
  grantId: string;
  hash: string;
}

export const newGrantId = () => randomBytes(16).toString("hex");

export function newTokenText(kind: TokenKind, grantId: string): string {
  return `${PREFIXES[kind]}${grantId}_${randomBytes(SECRET_BYTES).toString("base64url")}`;
}

/** Parses the text of a code or token. Returns undefined if the text does not have this form. */
export function readTokenText(text: string): TokenAddress | undefined {
  const [, prefix = "", grantId] = TOKEN.exec(text) ?? [];
  const kind = KINDS.get(prefix);
  return kind === undefined || grantId === undefined
    ? undefined
    : { kind, grantId, hash: sha256(text) };
}
