/** Limits of the authorization server and of OAuth clients that clients see or several folders share. */

/** A client redeems a code as soon as its browser is back: seconds (RFC 6749 section 4.1.2 says ten minutes at most). */
export const CODE_MS = 60_000;
export const ACCESS_TOKEN_MS = 3_600_000;
/** Of a refresh token that nobody uses. */
export const REFRESH_TOKEN_MS = 30 * 86_400_000;
/** A refresh token that was used is served again for so long: two processes of one client refresh at once. */
export const REFRESH_GRACE_MS = 60_000;
/** After it a person is asked again, however often the grant was refreshed. */
export const GRANT_MS = 365 * 86_400_000;
export const ID_TOKEN_MS = 3_600_000;
/** How long a person may take to sign in and decide. */
export const INTERACTION_MS = 10 * 60_000;
/** Clients one person has allowed something. */
export const CLIENTS_PER_USER_MAX = 500;
/** Of those on one page: each has its accounts and grants with it on the way, some 5 kB at most. */
export const CLIENTS_PER_PAGE = 50;
/** Grants of one person to one client: a browser, a laptop and a phone are three. Past it the oldest goes. */
export const GRANTS_PER_CLIENT_MAX = 50;
/** Accounts one grant may open. */
export const ACCOUNTS_PER_GRANT_MAX = 100;
/** A key is shown before it signs, since clients keep the set for a while. */
export const KEY_LEAD_MS = 86_400_000;
/** Of one account. One page of a listing holds them all, as clients of the public API expect. */
export const OAUTH_CLIENTS_PER_ACCOUNT_MAX = 100;
/** The new secret and the old one, while the client's servers are given the new. */
export const CLIENT_SECRETS_MAX = 2;
/** How exactly it is known when a secret was last used: finer would be a write for every use. */
export const SECRET_USED_EVERY_MS = 3_600_000;
/** Characters that are kept of one value before and after: a log of long lists still fits a few megabytes. */
export const AUDIT_VALUE_CHARS_MAX = 500;
/** The log of a client that was deleted can be read for so long. */
export const AUDIT_KEPT_MS = 90 * 86_400_000;
/** What the settings are where nothing is set: a lookup a minute, for two days, as in the public API. */
export const DNS_POLL_SECONDS = 60;
export const DNS_WINDOW_SECONDS = 172_800;
export const DNS_ANSWER_CHARS_MAX = 500;
