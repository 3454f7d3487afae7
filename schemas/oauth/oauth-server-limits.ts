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
/** Access tokens of one grant that live at once; past it the oldest goes. 64 processes refresh at once, and then once more. */
export const ACCESS_TOKENS_PER_GRANT_MAX = 160;
/**
 * Refresh tokens of one grant, as many: those that nobody has used yet, more than one only after retries, and those that
 * are served again. The oldest that nobody used goes.
 */
export const REFRESH_TOKENS_PER_GRANT_MAX = 160;
/** Bytes of the records beside tokens of one kind: with those of the other they fit into STATE_BYTES_MAX. */
export const TOKEN_RECORDS_BYTES_MAX = 250_000;
/** Used refresh tokens that are told from invented ones: one an hour, for the 30 days that one lives. */
export const USED_REFRESH_TOKENS_MAX = 750;
/** What is kept beside one token: its nonce, claims and PKCE challenge. */
export const TOKEN_RECORD_BYTES_MAX = 8 * 1024;
/** What a request brings to that: its nonce, scopes, challenge and address. The rest is what the server adds. */
export const TOKEN_REQUEST_BYTES_MAX = 6 * 1024;
/** Each text that a sign-out comes with. */
export const LOGOUT_TEXT_CHARS_MAX = 4_096;
/** An authorization request, as it waits for a person: what an HTTP server takes as a URL, several times over. */
export const INTERACTION_BYTES_MAX = 64 * 1024;

// --- What a person has allowed ---

/** Clients one person has allowed something. */
export const CLIENTS_PER_USER_MAX = 500;
/** Of those on one page: each has its accounts and grants with it on the way, some 5 kB at most. */
export const CLIENTS_PER_PAGE = 50;
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
/** NIST SP 800-63B section 5.1.1.2: eight characters at least, and long phrases welcome. */
export const PASSWORD_CHARS_MIN = 8;
export const PASSWORD_CHARS_MAX = 256;
/** Wrong passwords from one network in a window, for whomever. */
export const LOGIN_WINDOW_MS = 15 * 60_000;
export const LOGINS_PER_ADDRESS_MAX = 100;
/** Wrong passwords for one person from one network, or one browser of theirs; after these, each waits. */
export const SOURCE_GUESSES_FREE = 10;
/** The first wait, which doubles with each (NIST SP 800-63B section 5.2.2: 30 s up to an hour). */
export const SOURCE_PAUSE_MS = 30_000;
export const SOURCE_PAUSE_MS_MAX = 3_600_000;
/** What one network adds to the wrong passwords of all strangers: who has one address makes nobody else wait. */
export const GUESSES_PER_SOURCE_COUNTED = 3;
/** Those of all strangers, ten networks' at least; after these each try of a stranger waits, from whichever network. */
export const STRANGER_GUESSES_FREE = 30;
/** Short enough that a person with a new browser gets in between others' tries; with the bound, 288 guesses a day. */
export const STRANGER_PAUSE_MS = 10_000;
export const STRANGER_PAUSE_MS_MAX = 300_000;
/** Wrong passwords are forgotten after it. */
export const GUESSES_KEPT_MS = 86_400_000;
/** Networks and browsers that are remembered for one person; past it the oldest is forgotten, but what it added stays. */
export const SOURCES_KEPT_MAX = 100;
/** For so long after a sign-in a browser is no stranger to the person. */
export const KNOWN_BROWSER_MS = 180 * 86_400_000;
/** Persons to whom one browser is known; past it, the one who signed in least lately. */
export const KNOWN_PEOPLE_PER_BROWSER_MAX = 8;
/** New users from one address in a window. */
export const SIGNUPS_PER_ADDRESS_MAX = 20;
/** A form that asks for authorization, or to sign out, becomes an address: those end at 16 KB with all headers. */
export const AUTHORIZATION_QUERY_CHARS_MAX = 8_000;
/** Authorization requests from one address in a window: each is kept until somebody decides. */
export const AUTHORIZATIONS_PER_ADDRESS_MAX = 600;
/** Passwords that are hashed at a time, and that wait for it: each takes 19 MiB and 0.1 s of a core. */
export const PASSWORD_HASHES_AT_ONCE = 4;
export const PASSWORD_HASHES_WAITING_MAX = 64;
/** A form of ours. */
export const FORM_BYTES_MAX = 64 * 1024;
/** Its fields: a consent has one for each scope, and one for each account of the person. */
export const FORM_FIELDS_MAX = 1_000;
/** A form that a client sends. The library's own bound, which is not to be set. */
export const CLIENT_FORM_BYTES_MAX = 56 * 1024;
/** How long a browser is known by its cookie: so long may forms that are open, and requests under way, lie about. */
export const BROWSER_MS = 30 * 86_400_000;
/** Accounts that one person belongs to: their state lists them, and the page on which they consent. */
export const ACCOUNTS_PER_USER_MAX = 500;

/** How long a client may keep the server's metadata: it changes with the version of the program alone. */
export const METADATA_MS = 3_600_000;
