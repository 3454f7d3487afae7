/**
 * Detects a file's media type from its first bytes: one of a few harmless types that browsers show, text, or binary.
 */
import { SNIFFED_BYTES } from "../../../schemas/repositories/limits.ts";

const SIGNATURES: readonly [type: string, at: number, bytes: string][] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF87a"],
  ["image/gif", 0, "GIF89a"],
  ["image/webp", 8, "WEBP"],
  ["application/pdf", 0, "%PDF-"],
  ["application/zip", 0, "PK\x03\x04"],
  ["application/gzip", 0, "\x1f\x8b"],
];

export function sniffType(content: Buffer): string {
  for (const [type, at, bytes] of SIGNATURES) {
    if (content.toString("latin1", at, at + bytes.length) === bytes) return type;
  }
  return isText(content.subarray(0, SNIFFED_BYTES), content.length > SNIFFED_BYTES)
    ? "text/plain; charset=utf-8"
    : "application/octet-stream";
}

/** Returns whether the bytes are UTF-8 without NUL. If `isCut`, the last character may be incomplete. */
function isText(start: Buffer, isCut: boolean): boolean {
  if (start.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: isCut });
    return true;
  } catch {
    return false;
  }
}
