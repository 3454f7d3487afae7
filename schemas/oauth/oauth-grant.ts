/**
 * Messages of the actor that stores a grant: a person's permission for a client, with its code and tokens. The key is
 * the grant's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { tellAgain } from "../tell-again.ts";
import { Email, EpochMs, Id, Sha256 } from "../values.ts";
import { ACCOUNTS_PER_GRANT_MAX } from "./limits.ts";
import { ALL_SCOPES, Scope } from "./scopes.ts";

/** Limits the bytes of the record of one token: its nonce, claims and PKCE challenge. */
export const TOKEN_RECORD_BYTES_MAX = 8 * 1024;

const Scopes = z.array(Scope).max(ALL_SCOPES.length);

/** The person's decision about a client: the allowed scopes, the declined scopes and the accounts. */
export const Consent = z.object({
  scopes: Scopes,
  /** Requested scopes that the person declined. */
  rejectedScopes: Scopes,
  accountIds: z.array(Id).max(ACCOUNTS_PER_GRANT_MAX),
  /**
   * The invitations by which the person had joined these accounts, and the account of a private client. The consent does
   * not count for an account that the person left and joined again by another invitation.
   */
  invitationIds: z
    .array(Id)
    .max(ACCOUNTS_PER_GRANT_MAX + 1)
    .optional(),
});
export type Consent = z.infer<typeof Consent>;

export const GrantEntry = Consent.extend({
  clientId: Id,
  userId: Id,
  /** The user's e-mail address, which is the key of the user's actor. */
  email: Email,
  createdAt: EpochMs,
  expiresAt: EpochMs,
});
export type GrantEntry = z.infer<typeof GrantEntry>;

/** Data of a token that only the authorization server reads. The grant's actor stores it without reading it. */
const TokenRecord = z
  .record(z.string(), z.unknown())
  .refine((record) => Buffer.byteLength(JSON.stringify(record)) <= TOKEN_RECORD_BYTES_MAX, {
    error: `Expected at most ${TOKEN_RECORD_BYTES_MAX} bytes`,
  });

export const GrantToken = z.object({
  hash: Sha256.meta({ secret: true }),
  expiresAt: EpochMs,
  record: TokenRecord,
});
export type GrantToken = z.infer<typeof GrantToken>;

export const TokenKind = z.enum(["code", "access", "refresh"]);
export type TokenKind = z.infer<typeof TokenKind>;

const Hash = z.object({ hash: Sha256.meta({ secret: true }) });
const Nothing = z.object({});
/**
 * `reused`: the code had been used before, or the refresh token longer ago than REFRESH_GRACE_MS and its successors
 * were used too. The grant is now revoked.
 */
const Outcome = z.object({ outcome: z.enum(["issued", "reused"]) });

export const oauthGrant = defineContract({
  kind: "oauth-grant",
  messages: {
    /** Creates the grant with its one code. Repeating the call with the same code changes nothing. */
    open: {
      input: GrantEntry.omit({ createdAt: true }).extend({ code: GrantToken }),
      reply: Nothing,
    },
    /**
     * Returns the grant. This call, `find`, `redeem` and `refresh` refuse as `not_found` if the grant was revoked or
     * has expired.
     */
    get: { input: Nothing, reply: GrantEntry },
    /**
     * Returns a token and its grant. `used` means that the code was redeemed, or that `refresh` would revoke the grant
     * for the refresh token. Finding an access token counts as its use.
     */
    find: {
      input: Hash.extend({ kind: TokenKind }),
      reply: z.object({
        grant: GrantEntry,
        token: GrantToken.omit({ hash: true }).extend({ used: z.boolean() }),
      }),
    },
    /**
     * Issues tokens for the code, only once. A second use of the code revokes the grant, with the tokens of the first
     * use.
     */
    redeem: {
      input: z.object({
        codeHash: Sha256,
        access: GrantToken,
        refresh: GrantToken.optional(),
      }),
      reply: Outcome,
    },
    /**
     * Issues tokens for a refresh token. A repeated use within REFRESH_GRACE_MS issues tokens again. A later use does
     * so only if none of the tokens that were issued for it was used, and revokes these tokens; otherwise it revokes
     * the grant, as does the use of such a revoked refresh token.
     */
    refresh: {
      input: z.object({ refreshHash: Sha256, access: GrantToken, refresh: GrantToken }),
      reply: Outcome,
    },
    /** Revokes one access token. Repeating the call changes nothing. */
    revokeAccess: { input: Hash, reply: Nothing },
    /** Ends the grant permanently. Repeating the call changes nothing. */
    revoke: { input: Nothing, reply: Nothing },
    /** Works for a grant that has ended, too. */
    tellAgain,
    /** Sent by the person's grant list after the person revoked the client. */
    consentWithdrawn: { input: Nothing },
    /** Reminder: ends the grant when its last token has expired. */
    expire: { input: Nothing },
  },
  /**
   * Published after an access token is revoked (`revoked`) and when the grant ends (`ended`); `tellAgain` repeats it.
   */
  live: z.object({ change: z.enum(["revoked", "ended"]) }),
});
