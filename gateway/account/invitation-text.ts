/**
 * Makes and parses the text of an invitation: `tlin_<account>_<invitation>_<secret>`. The ids find the invitation,
 * and the secret proves that the holder may use it.
 */
import { createHash, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;
const INVITATION = /^tlin_([0-9a-f]{32})_([0-9a-f]{32})_([\w-]{43})$/;

interface InvitationText {
  accountId: string;
  id: string;
  secretHash: string;
}

export function newInvitation(accountId: string): InvitationText & { text: string } {
  const id = randomBytes(16).toString("hex");
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  const text = `tlin_${accountId}_${id}_${secret}`;
  return { text, accountId, id, secretHash: hashOf(secret) };
}

/** Parses the text of an invitation. Returns undefined if the text does not have this form. */
export function readInvitation(text: string): InvitationText | undefined {
  const [, accountId, id, secret] = INVITATION.exec(text) ?? [];
  if (accountId === undefined || id === undefined || secret === undefined) return undefined;
  return { accountId, id, secretHash: hashOf(secret) };
}

/** A plain hash is enough: nobody guesses 32 random bytes. */
function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
