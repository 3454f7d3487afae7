/** Limits of blobs and of values that are kept for a while. */

/** Characters of a blob's name: with its chunk's it stays well below a subject's practical 1 KiB. */
export const BLOB_NAME_CHARS_MAX = 256;
/** Pieces of a blob, half a message: twice as large they are a third quicker, and hold up others twice as long. */
export const BLOB_CHUNK_BYTES = 512 * 1024;
/** Pieces that are written or read ahead at once: 4 MiB of memory for each blob on its way. */
export const BLOB_CHUNKS_IN_FLIGHT = 8;
