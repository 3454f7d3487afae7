/**
 * Limits of the authorization server and of OAuth clients. This file contains limits that clients can notice or that
 * several folders share.
 */

/**
 * Lifetime of a code. A client redeems it within seconds, when the browser is back at the client (RFC 6749 section
 * 4.1.2 allows ten minutes at most).
 */
export const CODE_MS = 60_000;
export const ACCESS_TOKEN_MS = 3_600_000;
/** Lifetime of an unused refresh token. */
export const REFRESH_TOKEN_MS = 30 * 86_400_000;
/**
 * Grace period in which a used refresh token is accepted again, because several processes of one client may refresh
 * at the same time.
 */
export const REFRESH_GRACE_MS = 60_000;
/**
 * Lifetime of a grant. After this time the person must consent again, even if the client has refreshed its tokens.
 */
export const GRANT_MS = 365 * 86_400_000;
/** Limits the clients that one person has authorized. */
export const CLIENTS_PER_USER_MAX = 500;
/**
 * Number of authorized clients on one page of the list. Each takes at most about 5 kB with its accounts and grants.
 */
export const CLIENTS_PER_PAGE = 50;
/**
 * Limits the grants of one person to one client. A browser, a laptop and a phone need three. Past the limit, the
 * oldest grant ends.
 */
export const GRANTS_PER_CLIENT_MAX = 50;
/** Limits the accounts to which one grant gives access. */
export const ACCOUNTS_PER_GRANT_MAX = 100;
/** Time for which a new key is published before it signs, because clients cache the key set. */
export const KEY_LEAD_MS = 86_400_000;
/**
 * Limits the OAuth clients of one account. One page of a listing holds all of them, as clients of the public API
 * expect.
 */
export const OAUTH_CLIENTS_PER_ACCOUNT_MAX = 100;
/**
 * Limits the OAuth clients that one account creates within a day. A script can replace all clients of an account twice
 * a day. A deleted client frees its place at once, but its change log stays for AUDIT_KEPT_MS: without this limit, a
 * loop that creates and deletes clients would store without a bound.
 */
export const OAUTH_CLIENTS_PER_DAY_MAX = 200;
/**
 * Limits the secrets of a client: a new secret and the old one, which stays valid until all servers of the client use
 * the new one.
 */
export const CLIENT_SECRETS_MAX = 2;
/** Precision of the time at which a secret was last used. A more precise time would need a write for every use. */
export const SECRET_USED_EVERY_MS = 3_600_000;
/**
 * Limits the characters of each value, before and after a change, that the change log stores. So a full log takes at
 * most a few megabytes.
 */
export const AUDIT_VALUE_CHARS_MAX = 500;
/** How long the change log of a deleted client stays readable. */
export const AUDIT_KEPT_MS = 90 * 86_400_000;
/**
 * Default settings for the verification of a domain by DNS, as in the public API: one lookup a minute for two days.
 */
export const DNS_POLL_SECONDS = 60;
export const DNS_WINDOW_SECONDS = 172_800;
export const DNS_ANSWER_CHARS_MAX = 500;
/**
 * Limits the bytes of a logo. Pages show it 52 pixels wide. In base64, several such logos fit into the state of an
 * actor.
 */
export const LOGO_BYTES_MAX = 131_072;
