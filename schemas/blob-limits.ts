/** Limits of blobs and of values that are kept for a while. */

/** Characters of a blob's name: with its chunk's it stays well below a subject's practical 1 KiB. */
export const BLOB_NAME_CHARS_MAX = 256;
/** Pieces of a blob, half a message: twice as large they are a third quicker, and hold up others twice as long. */
export const BLOB_CHUNK_BYTES = 512 * 1024;
/** The smallest piece that is compressed: below it the saving is less than a message's own overhead. */
export const COMPRESSED_PIECE_BYTES_MIN = 1024;
/**
 * The part of a piece that its compressed form may take; above it the piece is stored as it is, which costs a read
 * nothing.
 */
export const COMPRESSED_PART_MAX = 0.9;
/** Up to here a piece is compressed at once, in some 0.2 ms: to give it to a thread costs more than that. */
export const COMPRESSED_SYNC_BYTES_MAX = 128 * 1024;
/** Pieces that are written or read ahead at once: 4 MiB of memory for each blob on its way. */
export const BLOB_CHUNKS_IN_FLIGHT = 8;
/** The time that a failed writer spends on removing its pieces; the others go with the name. */
export const BLOB_CLEAN_UP_MS = 2_000;
/** Bytes that crawls may store, for a disk of 20 GB: 80,000 pages of 100 kB. The bus takes less on a smaller disk. */
export const CRAWL_STORE_BYTES_MAX = 8 * 1024 ** 3;
/** The smallest size of a stream of blobs. */
export const BLOB_STORE_BYTES_MIN = 128 * 1024 ** 2;
/** Bytes of all caches together; past it the oldest value goes. */
export const CACHE_BYTES_MAX = 512 * 1024 ** 2;
/** A cache that does not answer within this time counts as empty. */
export const CACHE_ANSWER_MS = 500;
