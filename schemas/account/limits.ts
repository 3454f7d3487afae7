/** Limits of accounts, their members, sign-in and sessions that clients see or several folders share. */

/** Each text that a sign-out comes with. */
export const LOGOUT_TEXT_CHARS_MAX = 4_096;
export const SESSION_MS = 14 * 86_400_000;
/** Of one person; past it the oldest ends. */
export const SESSIONS_PER_USER_MAX = 50;
/** NIST SP 800-63B section 5.1.1.2: eight characters at least, and long phrases welcome. */
export const PASSWORD_CHARS_MIN = 8;
export const PASSWORD_CHARS_MAX = 256;
/** Wrong passwords from one network in a window, for whomever. */
export const LOGIN_WINDOW_MS = 15 * 60_000;
/** Accounts that one person belongs to: their state lists them, and the page on which they consent. */
export const ACCOUNTS_PER_USER_MAX = 500;
/** Members and invitations of one account: its state lists them, at about 400 bytes each. */
export const MEMBERS_PER_ACCOUNT_MAX = 200;
