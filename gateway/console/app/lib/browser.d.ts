/** Declarations for what the type check cannot see: style sheets, and the part of Node that schemas use. */
declare module "*.css" {}

interface Buffer extends Uint8Array {
  toString(encoding?: string): string;
}
declare const Buffer: {
  byteLength(text: string): number;
  from(text: string, encoding?: string): Buffer;
  from(bytes: ArrayBufferLike, offset: number, length: number): Buffer;
};
