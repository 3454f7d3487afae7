/** Every bound of blobs and of what is remembered for a while, with what it bridges. */

/** Characters of a blob's name: with its chunk's it stays well below a subject's practical 1 KiB. */
export const BLOB_NAME_CHARS_MAX = 256;
/** Pieces of a blob, half a message: twice as large they are a third quicker, and hold up others twice as long. */
export const BLOB_CHUNK_BYTES = 512 * 1024;
/** The smallest piece that is compressed: below it the saving is less than a message's own overhead. */
export const COMPRESSED_PIECE_BYTES_MIN = 1024;
/** The part of a piece that its compressed form may take; above it the piece is stored as it is, which costs a read nothing. */
export const COMPRESSED_PART_MAX = 0.9;
/** Up to here a piece is compressed at once, in some 0.2 ms: to give it to a thread costs more than that. */
export const COMPRESSED_SYNC_BYTES_MAX = 128 * 1024;
/** Pieces that are written or read ahead at once: 4 MiB of memory for each blob on its way. */
export const BLOB_CHUNKS_IN_FLIGHT = 8;
/** What a writer that fails spends on removing its pieces; what is left goes with the name. */
export const BLOB_CLEAN_UP_MS = 2_000;
/** What crawls may store, of a disk of 20 GB: 80,000 pages of 100 kB. The bus takes less where it has less. */
export const CRAWL_STORE_BYTES_MAX = 8 * 1024 ** 3;
/** The least a stream of blobs is made with. */
export const BLOB_STORE_BYTES_MIN = 128 * 1024 ** 2;
/** What all caches together may hold; past it the oldest goes. */
export const CACHE_BYTES_MAX = 512 * 1024 ** 2;
/** A cache that does not answer by then has nothing. */
export const CACHE_ANSWER_MS = 500;
