/**
 * Messages with which app code identifies the owner of a token that it received. The app's host calls a gateway over
 * the bus. The reply contains only information that the token's holder may know.
 */
import { z } from "zod";
import { EpochMs, Id } from "../values.ts";
import { APP_TOKEN_CHARS_MAX } from "./limits.ts";

/** Core subject. Gateways subscribe to it as a queue group, so exactly one of them answers. */
export const APP_TOKEN_SUBJECT = "app-token";

export const AppTokenRequest = z.object({
  /** The app's account. The reply lists the token's permissions there. */
  accountId: Id,
  token: z.string().max(APP_TOKEN_CHARS_MAX),
});
export type AppTokenRequest = z.infer<typeof AppTokenRequest>;

export const TokenIdentity = z.object({
  /** `api`: a token of an account. `oauth`: an access token that a user granted to a client. */
  kind: z.enum(["api", "oauth"]),
  /** Id of an API token, or of the grant of an access token. The id is not a secret. */
  id: z.string(),
  /** The user whom the token acts for. Always set for an access token and for a token made with one. */
  userId: z.string().optional(),
  clientId: z.string().optional(),
  /** Ids of the accounts that the token can use. */
  accountIds: z.array(z.string()),
  /** The scopes that the user granted to the client of an access token, or the permissions of an API token. */
  scopes: z.array(z.string()),
  /** The token's current permissions in the app's own account; empty if it cannot use that account. */
  permissions: z.array(z.string()),
  expiresAt: EpochMs.optional(),
});
export type TokenIdentity = z.infer<typeof TokenIdentity>;

export const AppTokenAnswer = z.union([
  z.object({ identity: TokenIdentity }),
  /** The text is no token, or the token is no longer valid. */
  z.object({ isUnknown: z.literal(true) }),
  /** The answer is not known now. */
  z.object({ isUnavailable: z.literal(true) }),
]);
export type AppTokenAnswer = z.infer<typeof AppTokenAnswer>;
