/** Every bound of OAuth clients, their domains, and the members of accounts, with what it bridges. */

// --- Clients ---

/** Of one account. One page of a listing holds them all, as clients of the public API expect. */
export const OAUTH_CLIENTS_PER_ACCOUNT_MAX = 100;
/** A client that was promised and is not made by then does not come any more: no call lives longer. */
export const OAUTH_CLIENT_RESERVED_MS = 5 * 60_000;
export const CLIENT_NAME_CHARS_MAX = 100;
/** Redirect URIs and origins of one list: a client with all its environments has some ten. */
export const CLIENT_URIS_MAX = 50;
/** Longer addresses do not fit the query they travel in, beside all else, on the way to common servers. */
export const CLIENT_URI_CHARS_MAX = 2_048;
/** All that one client is registered with: an account's clients then fit one answer of some megabytes. */
export const CLIENT_CHARS_MAX = 32_000;
/** The new secret and the old one, while the client's servers are given the new. */
export const CLIENT_SECRETS_MAX = 2;
/** How exactly it is known when a secret was last used: finer would be a write for every use. */
export const SECRET_USED_EVERY_MS = 3_600_000;
/** Entries in the log that people make of one client within a day: somebody who tries out its settings makes some twenty. */
export const CLIENT_CHANGES_PER_DAY_MAX = 40;
/** Changes that are kept of one client: however many somebody makes, what they did is there for ten days and more. */
export const AUDIT_ENTRIES_MAX = 600;
/** Characters that are kept of one value before and after: a log of long lists still fits a few megabytes. */
export const AUDIT_VALUE_CHARS_MAX = 500;
/** The log of a client that was deleted can be read for so long. */
export const AUDIT_KEPT_MS = 90 * 86_400_000;

// --- Domains ---

/** First pause between two lookups; it doubles up to the setting. */
export const DOMAIN_POLL_FIRST_MS = 10_000;
/** What the settings are where nothing is set: a lookup a minute, for two days, as in the public API. */
export const DNS_POLL_SECONDS = 60;
export const DNS_WINDOW_SECONDS = 172_800;
/** A record that was found is looked for again this often. */
export const DOMAIN_RECHECK_MS = 86_400_000;
/** A lookup nobody answered by then is asked for again, then ever later: the longest that a busy lane takes. */
export const DOMAIN_CHECK_LOST_MS = 10 * 60_000;
/** How long one server may take for the first try, and tries of each, the later given longer: 9 s a server in all. */
export const DNS_TRY_MS = 3_000;
export const DNS_TRIES = 2;
/** Lookups of one process at a time: each waits for the network and costs nothing. */
export const DNS_LOOKUPS_MAX = 32;
/** Records of one answer that are shown, and the characters of what is shown. */
export const DNS_RECORDS_SHOWN_MAX = 10;
export const DNS_ANSWER_CHARS_MAX = 500;

// --- Members ---

/** Members and invitations of one account: its state lists them, at about 400 bytes each. */
export const MEMBERS_PER_ACCOUNT_MAX = 200;
/** An invitation is good for a week. */
export const INVITATION_MS = 7 * 86_400_000;
