/**
 * Limits of accounts, their members, sign-in and sessions. This file contains limits that clients can notice or that
 * several folders share.
 */

/** Limits the characters of each parameter of a sign-out request. */
export const LOGOUT_TEXT_CHARS_MAX = 4_096;
export const SESSION_MS = 14 * 86_400_000;
/** Limits the sessions of one person. Past the limit, the oldest session ends. */
export const SESSIONS_PER_USER_MAX = 50;
/** NIST SP 800-63B section 5.1.1.2: a password has at least eight characters, and long phrases are allowed. */
export const PASSWORD_CHARS_MIN = 8;
/** The window of time in which attempts from one network are counted. */
export const LOGIN_WINDOW_MS = 15 * 60_000;
/** Limits the accounts of one person. The user's state and the consent page list all of them. */
export const ACCOUNTS_PER_USER_MAX = 500;
/** Precision of the time at which an API token was last used. A more precise time would need a write for every request. */
export const TOKEN_USED_EVERY_MS = 10 * 60_000;
/** Limits the members and invitations of one account. The account's state lists them at about 400 bytes each. */
export const MEMBERS_PER_ACCOUNT_MAX = 200;
/**
 * Limits the requests of one token or browser session in one window that take access away and that the other limit
 * would refuse. Enough to revoke half of an account's tokens.
 */
export const REVOCATIONS_PER_WINDOW = 60;
