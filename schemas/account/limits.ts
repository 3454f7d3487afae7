/** Limits of accounts, their members, sign-in and sessions that clients see or several folders share. */

/** Characters of each parameter of a sign-out request. */
export const LOGOUT_TEXT_CHARS_MAX = 4_096;
export const SESSION_MS = 14 * 86_400_000;
/** Sessions of one person. Past it the oldest ends. */
export const SESSIONS_PER_USER_MAX = 50;
/** NIST SP 800-63B section 5.1.1.2: eight characters at least, and long phrases welcome. */
export const PASSWORD_CHARS_MIN = 8;
/** Window in which attempts from one network are counted. */
export const LOGIN_WINDOW_MS = 15 * 60_000;
/** Accounts of one person. The user's state and the consent page list all of them. */
export const ACCOUNTS_PER_USER_MAX = 500;
/** Members and invitations of one account. Its state lists them at about 400 bytes each. */
export const MEMBERS_PER_ACCOUNT_MAX = 200;
