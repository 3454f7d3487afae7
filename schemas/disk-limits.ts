/** Every bound of the disk below the embedded bus: what it needs at all, and what is kept back on it. */

/** The smallest volume that holds every stream at its least (896 MiB), of which nats-server takes three quarters. */
export const DISK_BYTES_MIN = 1_288_490_188;
/** How often the free bytes are read: a disk that writes 100 MB/s takes 50 MB meanwhile. */
export const DISK_POLL_MS = 500;
/** Below it clients' writes are refused. Leases and deletes need a few MB an hour; reads need room for a pack. */
export const DISK_WRITES_STOP_BYTES = 96 * 1024 ** 2;
/** From here on writes are accepted again: more than it stops at, so that one write does not turn it over. */
export const DISK_WRITES_RESUME_BYTES = 128 * 1024 ** 2;
/** A file of this size is given up when other programs have taken all the rest: the bus goes on with its room. */
export const DISK_RESERVE_BYTES = 32 * 1024 ** 2;
/** Below it the reserve is given up. */
export const DISK_RESERVE_USED_BELOW_BYTES = 8 * 1024 ** 2;
/**
 * The least with which a nats-server that failed to write is started again, and the pause before it is done once
 * more.
 */
export const DISK_RESTART_BYTES = 8 * 1024 ** 2;
export const DISK_RESTART_PAUSE_MS = 5_000;
/**
 * What no bounded stream may take of the bus's room: actors' states, mail, tasks and leases have no bound of their
 * own.
 */
export const KEPT_STORE_BYTES = 1024 ** 3;
