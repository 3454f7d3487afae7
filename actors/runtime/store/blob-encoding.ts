/** Compresses the pieces of a blob if this saves space, because the streams store pieces unchanged. */
import { promisify } from "node:util";
import {
  constants as zstd,
  zstdCompress,
  zstdCompressSync,
  zstdDecompress,
  zstdDecompressSync,
} from "node:zlib";
import type { BLOB_STREAMS } from "../../../schemas/subjects.ts";

/**
 * The smallest piece that is compressed. For a smaller piece, compression saves less than the overhead of a message.
 */
export const COMPRESSED_PIECE_BYTES_MIN = 1024;
/**
 * The largest part of a piece's size that its compressed form may take. Above this part the piece is stored
 * uncompressed, so that reads need no work for it.
 */
const COMPRESSED_PART_MAX = 0.9;
/** A piece up to this size is compressed synchronously in about 0.2 ms, because handing it to a thread costs more. */
export const COMPRESSED_SYNC_BYTES_MAX = 128 * 1024;

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** The header of a message whose payload is compressed. A message without it holds the bytes themselves. */
export const ENCODING_HEADER = "Trunkline-Encoding";
const ZSTD = "zstd";

/** The fastest level of zstd that still removes most repetitions in a web page. */
const PARAMETERS = { [zstd.ZSTD_c_compressionLevel]: 1 };

/**
 * The families whose blobs are compressed. The other families hold packs and large files, which arrive compressed or
 * whose clients chose not to compress them.
 */
const COMPRESSED_FAMILIES: readonly string[] = [
  "crawl",
  "app",
] satisfies (keyof typeof BLOB_STREAMS)[];

export interface EncodedPiece {
  payload: Uint8Array;
  headers: Readonly<Record<string, string>>;
}

/**
 * Encodes the pieces of one blob. After a piece that did not shrink enough, all later pieces are stored uncompressed.
 */
export class PieceEncoder {
  #isWorthwhile: boolean;

  constructor(name: string) {
    this.#isWorthwhile = COMPRESSED_FAMILIES.includes(name.slice(0, name.indexOf(".")));
  }

  async encode(piece: Uint8Array): Promise<EncodedPiece> {
    const plain = { payload: piece, headers: {} };
    if (!this.#isWorthwhile || piece.length < COMPRESSED_PIECE_BYTES_MIN) return plain;
    const options = { params: PARAMETERS, pledgedSrcSize: piece.length };
    const isSmall = piece.length <= COMPRESSED_SYNC_BYTES_MAX;
    const payload = isSmall ? zstdCompressSync(piece, options) : await compress(piece, options);
    this.#isWorthwhile = payload.length <= piece.length * COMPRESSED_PART_MAX;
    return this.#isWorthwhile ? { payload, headers: { [ENCODING_HEADER]: ZSTD } } : plain;
  }
}

/** Returns the bytes of a piece before `encode`. `bytesMax` is the size of the whole blob, which no piece exceeds. */
export async function decodePiece(
  { data, encoding }: { data: Uint8Array; encoding: string },
  bytesMax: number,
): Promise<Uint8Array> {
  if (encoding === "") return data;
  if (encoding !== ZSTD) throw new Error(`Cannot read a piece of a blob: unknown ${encoding}`);
  const options = { maxOutputLength: Math.max(1, bytesMax) };
  const isSmall = bytesMax <= COMPRESSED_SYNC_BYTES_MAX;
  return isSmall ? zstdDecompressSync(data, options) : await decompress(data, options);
}
