/** Limits of the bytes that a gateway holds in memory, for all of its purposes. */

/**
 * SMALL_BODY_BYTES_MAX is the largest body that may use the reserve for small bodies: every body with only a few
 * fields, and most events. SMALL_BODIES_BYTES_MAX is the size of each reserve, for 512 of the largest.
 */
export const SMALL_BODY_BYTES_MAX = 64 * 1024;
export const SMALL_BODIES_BYTES_MAX = 32 * 1024 * 1024;
/**
 * The share of one account, and of one app, in each limit for the bytes that a gateway holds. With half for an
 * account, two of its largest rendering bodies fit at a time, and no account can hold everything.
 */
export const BYTES_ACCOUNT_SHARE = 0.5;
export const BYTES_APP_SHARE = 0.25;
