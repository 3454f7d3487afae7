/** Bounds of failed authentications by programs. */

/**
 * Failed authentications in a window: of one identity (client, token, grant) from one address, past which it is refused
 * there, and of one address, past which its lookups are slowed. A script with an old secret may repeat its mistake; guesses stay rare.
 */
export const AUTHENTICATION_FAILURES_MAX = 100;
export const AUTHENTICATION_WINDOW_MS = 60_000;
/** Lookups at once from an address that failed too often. Each takes milliseconds, so a good token hardly waits for the others. */
export const SLOWED_LOOKUPS_MAX = 4;
/** Requests from such an address that wait for a lookup: a second's worth; each holds a connection. */
export const AUTHENTICATION_WAITING_MAX = 1_000;
/** Addresses, identities at addresses, and good credentials that a gateway remembers: some megabytes. */
export const AUTHENTICATION_CLIENTS_MAX = 10_000;
