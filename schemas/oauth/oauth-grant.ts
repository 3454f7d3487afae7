/** The contract of a grant: a person's permission for a client, and its code and tokens. The key is its id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { tellAgain } from "../tell-again.ts";
import { Email, EpochMs, Id, Sha256 } from "../values.ts";
import { ACCOUNTS_PER_GRANT_MAX } from "./limits.ts";
import { ALL_SCOPES, Scope } from "./scopes.ts";

/** Bytes of the record of one token: its nonce, claims and PKCE challenge. */
export const TOKEN_RECORD_BYTES_MAX = 8 * 1024;

const Scopes = z.array(Scope).max(ALL_SCOPES.length);

/** The decision of the person. */
export const Consent = z.object({
  scopes: Scopes,
  /** Requested scopes that the person declined. */
  rejectedScopes: Scopes,
  accountIds: z.array(Id).max(ACCOUNTS_PER_GRANT_MAX),
});
export type Consent = z.infer<typeof Consent>;

export const GrantEntry = Consent.extend({
  clientId: Id,
  userId: Id,
  /** Finds the user. */
  email: Email,
  createdAt: EpochMs,
  expiresAt: EpochMs,
});
export type GrantEntry = z.infer<typeof GrantEntry>;

/** Data of the authorization server beside a token's hash. The grant does not read it. */
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
/** Reused: the token had been used before, and the grant is revoked. */
const Outcome = z.object({ outcome: z.enum(["issued", "reused"]) });

export const oauthGrant = defineContract({
  kind: "oauth-grant",
  messages: {
    /** Makes the grant with its one code. Repeating it with the same code changes nothing. */
    open: {
      input: GrantEntry.omit({ createdAt: true }).extend({ code: GrantToken }),
      reply: Nothing,
    },
    /** `not_found` once it is revoked or has expired, here and below. */
    get: { input: Nothing, reply: GrantEntry },
    /**
     * A token and its grant. `used`: the code was redeemed, or the refresh token was used longer ago than
     * REFRESH_GRACE_MS.
     */
    find: {
      input: Hash.extend({ kind: TokenKind }),
      reply: z.object({
        grant: GrantEntry,
        token: GrantToken.omit({ hash: true }).extend({ used: z.boolean() }),
      }),
    },
    /** Issues tokens for the code, once. A second use revokes the tokens of the first. */
    redeem: {
      input: z.object({
        codeHash: Sha256,
        access: GrantToken,
        refresh: GrantToken.optional(),
      }),
      reply: Outcome,
    },
    /** Gives tokens for a refresh token, and again within REFRESH_GRACE_MS. Later use revokes the grant. */
    refresh: {
      input: z.object({ refreshHash: Sha256, access: GrantToken, refresh: GrantToken }),
      reply: Outcome,
    },
    /** Revokes one access token. Repeating it changes nothing. */
    revokeAccess: { input: Hash, reply: Nothing },
    /** Ends the grant permanently. Repeating it changes nothing. */
    revoke: { input: Nothing, reply: Nothing },
    /** Also of a grant that is gone. */
    tellAgain,
    /** Sent by the person's list after they revoked the client. */
    consentWithdrawn: { input: Nothing },
    /** Reminder. */
    expire: { input: Nothing },
  },
  /** Published after each revoked token, and when the grant ends. */
  live: z.object({ change: z.enum(["revoked", "ended"]) }),
});
