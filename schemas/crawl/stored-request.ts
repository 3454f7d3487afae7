/**
 * The stored form of a crawl's request: the sealed key of the request, a line feed, and the encrypted request. The
 * gateway writes it, and workers read it. Earlier versions stored the request as JSON.
 */
import { decryptRequest, encryptRequest, newRequestKey } from "../rendering/request-key.ts";

const LINE_FEED = 0x0a;

/** The name of the blob with a job's request. */
export const crawlRequestBlob = (job: string) => `crawl.${job}.request`;

/** Encrypts a request with a new key. `seal` seals this key with the platform's key. */
export async function encryptCrawlRequest(
  request: Uint8Array,
  seal: (key: string) => string,
): Promise<Uint8Array> {
  const key = newRequestKey();
  return Buffer.concat([Buffer.from(`${seal(key)}\n`), await encryptRequest(request, key)]);
}

/** Returns the JSON of a request. `open` opens a sealed key; it is not called where the request is not encrypted. */
export async function decryptCrawlRequest(
  stored: Uint8Array,
  open: (sealed: string) => Promise<string>,
): Promise<Uint8Array> {
  const sealed = sealedKeyOf(stored);
  if (sealed === undefined) return stored;
  return decryptRequest(stored.subarray(sealed.length + 1), await open(sealed));
}

/** Returns the sealed key in the first bytes of a stored request; undefined where it is not encrypted. */
export function sealedKeyOf(stored: Uint8Array): string | undefined {
  if (stored[0] === "{".charCodeAt(0)) return undefined;
  const end = stored.indexOf(LINE_FEED);
  return end < 0 ? undefined : Buffer.from(stored.subarray(0, end)).toString();
}
