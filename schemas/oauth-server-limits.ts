/** Every bound of the authorization server, of signing in and of its pages, with what it bridges. */

// --- What it gives out ---

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
/** Access tokens of one grant that live at once; past it the oldest goes. A client refreshes once an hour. */
export const ACCESS_TOKENS_PER_GRANT_MAX = 50;
/** Refresh tokens of one grant that nobody has used yet: more than one only after retries. The oldest goes. */
export const REFRESH_TOKENS_PER_GRANT_MAX = 20;
/** Used refresh tokens that are told from invented ones: one an hour, for the 30 days that one lives. */
export const USED_REFRESH_TOKENS_MAX = 750;
/** What is kept beside one token: its nonce, claims and PKCE challenge. */
export const TOKEN_RECORD_BYTES_MAX = 8 * 1024;
/** An authorization request, as it waits for a person: what an HTTP server takes as a URL, several times over. */
export const INTERACTION_BYTES_MAX = 64 * 1024;

// --- What a person has allowed ---

/** Clients one person has allowed something. */
export const CLIENTS_PER_USER_MAX = 500;
/** Grants of one person to one client: a browser, a laptop and a phone are three. Past it the oldest goes. */
export const GRANTS_PER_CLIENT_MAX = 50;
/** Accounts one grant may open. */
export const ACCOUNTS_PER_GRANT_MAX = 100;

// --- Signing keys ---

/** How long a key signs. */
export const KEY_SIGNS_MS = 90 * 86_400_000;
/** A key is shown before it signs, since clients keep the set for a while. */
export const KEY_LEAD_MS = 86_400_000;
/** A key is shown after it has signed its last: far longer than any ID token lives. */
export const KEY_KEPT_MS = 7 * 86_400_000;
/** How often a gateway looks for keys, beside hearing of them. */
export const KEYS_CHECK_MS = 5 * 60_000;

// --- Tokens in use ---

/** A token's grant, client and members are asked for anew after it, though nothing of a change was heard. */
export const TOKEN_CACHED_MS = 5_000;
/** Tokens that one gateway remembers. */
export const TOKENS_CACHED_MAX = 10_000;

// --- Signing in ---

export const SESSION_MS = 14 * 86_400_000;
/** Of one person; past it the oldest ends. */
export const SESSIONS_PER_USER_MAX = 50;
/** A sign-out of somebody who is not signed in waits this long for its confirmation. */
export const ANONYMOUS_SESSION_MS = 10 * 60_000;
/** NIST SP 800-63B section 5.1.1.2: eight characters at least, and long phrases welcome. */
export const PASSWORD_CHARS_MIN = 8;
export const PASSWORD_CHARS_MAX = 256;
/** Tries to sign in to one account, and from one address, in a window. */
export const LOGIN_WINDOW_MS = 15 * 60_000;
export const LOGINS_PER_ACCOUNT_MAX = 10;
export const LOGINS_PER_ADDRESS_MAX = 100;
/** New users from one address in a window. */
export const SIGNUPS_PER_ADDRESS_MAX = 20;
/** Authorization requests from one address in a window: each is kept until somebody decides. */
export const AUTHORIZATIONS_PER_ADDRESS_MAX = 600;
/** Passwords that are hashed at a time, and that wait for it: each takes 19 MiB and 0.1 s of a core. */
export const PASSWORD_HASHES_AT_ONCE = 4;
export const PASSWORD_HASHES_WAITING_MAX = 64;
/** A form of ours. */
export const FORM_BYTES_MAX = 64 * 1024;
