/** An API token as text: `tl_<id>_<secret>`. Only the secret's hash is stored. */
import { randomBytes } from "node:crypto";
import { sha256 } from "../http/sha256.ts";

const SECRET_BYTES = 32;
const TOKEN = /^tl_([0-9a-f]{32})_([\w-]{43})$/;

export interface NewToken {
  id: string;
  text: string;
  secretHash: string;
  lastFour: string;
}

export function newToken(id = randomBytes(16).toString("hex")): NewToken {
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  const text = `tl_${id}_${secret}`;
  return { id, text, secretHash: sha256(secret), lastFour: text.slice(-4) };
}

/** Parses the text of an API token. Returns undefined if the text does not have this form. */
export function readToken(text: string): { id: string; secretHash: string } | undefined {
  const [, id, secret] = TOKEN.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secretHash: sha256(secret) };
}
