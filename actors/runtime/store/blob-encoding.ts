/** Compresses the pieces of a blob where that saves room: the streams themselves store what they are given. */
import { promisify } from "node:util";
import {
  constants as zstd,
  zstdCompress,
  zstdCompressSync,
  zstdDecompress,
  zstdDecompressSync,
} from "node:zlib";
import type { BLOB_STREAMS } from "../../../schemas/subjects.ts";

/** The smallest piece that is compressed: below it the saving is less than a message's own overhead. */
export const COMPRESSED_PIECE_BYTES_MIN = 1024;
/**
 * The part of a piece that its compressed form may take; above it the piece is stored as it is, which costs a read
 * nothing.
 */
const COMPRESSED_PART_MAX = 0.9;
/** Up to here a piece is compressed at once, in some 0.2 ms: to give it to a thread costs more than that. */
export const COMPRESSED_SYNC_BYTES_MAX = 128 * 1024;

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** The header of a message whose payload is compressed. A message without it holds the bytes themselves. */
export const ENCODING_HEADER = "Trunkline-Encoding";
const ZSTD = "zstd";

/** zstd's fastest level that still finds most of what repeats in a page. */
const PARAMETERS = { [zstd.ZSTD_c_compressionLevel]: 1 };

/** Packs and large files come compressed, or their clients chose not to compress them. */
const COMPRESSED_FAMILIES: readonly string[] = [
  "crawl",
  "app",
] satisfies (keyof typeof BLOB_STREAMS)[];

export interface EncodedPiece {
  payload: Uint8Array;
  headers: Readonly<Record<string, string>>;
}

/** Encodes the pieces of one blob. After a piece that did not shrink, it stores the pieces behind it as they are. */
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

/** The bytes of a piece as they were before `encode`. `bytesMax` is the size of its blob, which no piece exceeds. */
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
