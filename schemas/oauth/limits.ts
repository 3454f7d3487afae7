/** Limits of the authorization server and of OAuth clients that clients see or several folders share. */

/**
 * A client redeems a code as soon as its browser is back: seconds (RFC 6749 section 4.1.2 says ten minutes at most).
 */
export const CODE_MS = 60_000;
export const ACCESS_TOKEN_MS = 3_600_000;
/** Lifetime of an unused refresh token. */
export const REFRESH_TOKEN_MS = 30 * 86_400_000;
/**
 * Grace period in which a used refresh token is accepted again, because processes of one client may refresh at once.
 */
export const REFRESH_GRACE_MS = 60_000;
/** Lifetime of a grant. After it the person must consent again, even if the grant was refreshed. */
export const GRANT_MS = 365 * 86_400_000;
/** Clients that one person has authorized. */
export const CLIENTS_PER_USER_MAX = 500;
/** Authorized clients on one page. Each takes at most about 5 kB with its accounts and grants. */
export const CLIENTS_PER_PAGE = 50;
/** Grants of one person to one client; a browser, a laptop and a phone need three. Past it the oldest ends. */
export const GRANTS_PER_CLIENT_MAX = 50;
/** Accounts one grant may open. */
export const ACCOUNTS_PER_GRANT_MAX = 100;
/** Time for which a new key is published before it signs, because clients cache the key set. */
export const KEY_LEAD_MS = 86_400_000;
/** OAuth clients of one account. One page of a listing holds all of them, as clients of the public API expect. */
export const OAUTH_CLIENTS_PER_ACCOUNT_MAX = 100;
/** The new secret and the old one, until all servers of the client use the new one. */
export const CLIENT_SECRETS_MAX = 2;
/** Precision of a secret's last use. A finer value would cost a write for every use. */
export const SECRET_USED_EVERY_MS = 3_600_000;
/**
 * Characters of one value that the change log stores, before and after the change. A full log stays within a few
 * megabytes.
 */
export const AUDIT_VALUE_CHARS_MAX = 500;
/** How long the change log of a deleted client stays readable. */
export const AUDIT_KEPT_MS = 90 * 86_400_000;
/** Default DNS settings, as in the public API: one lookup a minute for two days. */
export const DNS_POLL_SECONDS = 60;
export const DNS_WINDOW_SECONDS = 172_800;
export const DNS_ANSWER_CHARS_MAX = 500;
/** Bytes of a logo. It is shown 52 pixels wide, and with its base64 it fits into an actor's state several times. */
export const LOGO_BYTES_MAX = 131_072;
