/** Every bound of the disk below the embedded bus: what it needs at all, and what is kept back on it. */

/** How often the free bytes are read: a disk that writes 100 MB/s takes 50 MB meanwhile. */
export const DISK_POLL_MS = 500;
