/**
 * Type declarations that the type check of the console needs: for style sheets, and for the part of Node that schemas
 * use.
 */
declare module "*.css" {}

/** The body of a request that deploys the example; the bundler makes it. */
declare module "example-app" {
  export const config: { name: string; webhooks: [{ path: string; secret: string }] };
  export const bundle: string;
}

interface Buffer extends Uint8Array {
  toString(encoding?: string): string;
}
declare const Buffer: {
  byteLength(text: string): number;
  from(text: string, encoding?: string): Buffer;
  from(bytes: ArrayBufferLike, offset: number, length: number): Buffer;
};
