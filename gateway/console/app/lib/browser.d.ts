/** Declarations for what the type check cannot see: style sheets, and the part of Node that schemas use. */
declare module "*.css" {}

declare const Buffer: {
  byteLength(text: string): number;
  from(text: string, encoding?: string): { length: number; toString(encoding?: string): string };
};
