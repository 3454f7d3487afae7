/** Reads the part of a body that is kept. */
import type { Readable } from "node:stream";
import { CRAWL_BODY_BYTES_MAX, LARGE_BODY_BYTES } from "../../../../schemas/crawl/limits.ts";

interface ReadBody {
  bytes: Uint8Array;
  /** The body was longer. */
  truncated: boolean;
}

/** Reads up to CRAWL_BODY_BYTES_MAX and leaves the rest unread. Rejects with the body's error. */
export function readBody(body: Readable, onLarge: () => Promise<void>): Promise<ReadBody> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let large = false;
    body.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > CRAWL_BODY_BYTES_MAX) {
        body.pause();
        const bytes = Buffer.concat(chunks, length).subarray(0, CRAWL_BODY_BYTES_MAX);
        resolve({ bytes, truncated: true });
      } else if (length > LARGE_BODY_BYTES && !large) {
        large = true;
        body.pause();
        onLarge().then(() => body.resume(), reject);
      }
    });
    body.once("end", () => {
      const [first] = chunks;
      const bytes = first && chunks.length === 1 ? first : Buffer.concat(chunks, length);
      resolve({ bytes, truncated: false });
    });
    body.once("error", reject);
    body.once("close", () => reject(new Error("The body was closed before its end")));
  });
}
