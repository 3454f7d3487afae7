/** Reads everything that a bus stores, to prove that a secret is not in it. */
import { zstdDecompressSync } from "node:zlib";
import type { Bus } from "../../actors/runtime/bus/bus.ts";

/** The first bytes of a zstd frame (RFC 8878, section 3.1.1). */
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** Returns the text of every stored message of every stream, with its subject and header, and without compression. */
export async function storedTexts({ jetstream: { streams } }: Bus): Promise<string[]> {
  const texts: string[] = [];
  for await (const { config, state } of streams.list()) {
    if (state.messages === 0) continue;
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const found = await streams.getMessage(config.name, { seq }).catch(nullIfGone);
      if (found) texts.push(`${found.subject} ${found.header} ${plain(found.data)}`);
    }
  }
  return texts;
}

/**
 * Returns null for a message that was deleted meanwhile. Throws every other error, such as a stream that cannot be
 * read.
 */
function nullIfGone(error: unknown): null {
  if (error instanceof Error && /no message found/.test(error.message)) return null;
  throw error;
}

/** Returns the texts that contain the value, either unchanged or inside of a longer text in base64, at any offset. */
export function textsWith(value: string, texts: readonly string[]): string[] {
  const forms = [value, ...[0, 1, 2].map((offset) => insideOfBase64(value, offset))];
  return texts.filter((text) => forms.some((form) => text.includes(form)));
}

/**
 * Returns the base64 characters that depend only on the value, if it stands `offset` bytes after a multiple of three
 * bytes.
 */
function insideOfBase64(value: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(value)]);
  const whole = bytes.subarray(0, bytes.length - (bytes.length % 3));
  return whole.toString("base64").slice(offset === 0 ? 0 : 4);
}

function plain(data: Uint8Array): string {
  const bytes = Buffer.from(data);
  return (bytes.subarray(0, 4).equals(ZSTD) ? zstdDecompressSync(bytes) : bytes).toString();
}
