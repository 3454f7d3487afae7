/** Numbers for the sizes of streams: of all together, of those with a fixed size, and the shares of the disk and of accounts. */

/**
 * Bytes that all streams may have together, if neither the disk of the bus nor a setting says how many. The number
 * assumes a disk of 48 GiB.
 */
export const STORE_BYTES = 36 * 1024 ** 3;
/** The smallest setting of the bytes of a store. */
export const STORE_BYTES_SETTING_MIN = 128 * 1024 ** 2;
/** The share of the free disk that the streams get. nats-server gives out no more. */
export const STORE_DISK_SHARE = 3 / 4;
/**
 * The share of a stream that one account may fill, unless a setting removes its limit: four accounts fill a stream, and
 * two leave half of it to all others.
 */
export const ACCOUNT_STREAM_SHARE = 1 / 4;
/**
 * Upkeep of repositories does not fill a stream of packs past this share, because it needs room twice: for the new
 * packs, and for the replaced ones until the sweep removes them some hours later.
 */
export const UPKEEP_STREAM_SHARE = 0.85;
/** Upkeep that stores fewer bytes is never postponed. So repositories of small pushes stay below their limit of packs. */
export const UPKEEP_SMALL_BYTES = 1024 ** 2;
/**
 * Bytes that KEPT reserves for states, mail, tasks and leases, because their streams have no byte limit.
 */
export const KEPT_STORE_BYTES = 1024 ** 3;
/** Maximum bytes of all caches together. Above it, the stream drops the oldest values. */
export const CACHE_BYTES_MAX = 512 * 1024 ** 2;
/** Maximum bytes of the lines that apps have printed. Above it, the stream drops the oldest lines. */
export const APP_LOGS_BYTES_MAX = 512 * 1024 ** 2;
/**
 * Maximum bytes of the lines of one account's apps, of those that one host has printed. Above it, the host drops the
 * account's oldest lines.
 */
export const APP_LOGS_OF_ACCOUNT_BYTES_MAX = APP_LOGS_BYTES_MAX / 8;
/** Maximum bytes of request steps. They suffice for about 60,000 requests with four steps each. */
export const TRACES_BYTES_MAX = 24 * 1024 ** 2;
