/**
 * For scripts/setup: downloads a URL to a file, or only checks that the URL exists if the file is `-`. Fails quickly
 * if the host cannot be reached.
 */
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * Timeout for the response: long enough for a slow name server, and short enough for a user behind a firewall,
 * because the next source is tried after it.
 */
const ANSWER_MS_MAX = 5_000;

const [url = "", path = "-"] = process.argv.slice(2);
try {
  await download(url, path);
} catch (error) {
  const reason = error instanceof Error ? (error.cause ?? error) : error;
  console.error(`Cannot download ${url}: ${reason instanceof Error ? reason.message : reason}`);
  process.exitCode = 1;
}

async function download(source: string, target: string): Promise<void> {
  const controller = new AbortController();
  const late = () => controller.abort(new Error(`no answer within ${ANSWER_MS_MAX} ms`));
  const timer = setTimeout(late, ANSWER_MS_MAX);
  const response = await fetch(source, { signal: controller.signal });
  clearTimeout(timer);
  if (!response.ok || response.body === null) throw new Error(`the answer is ${response.status}`);
  if (target === "-") await response.body.cancel();
  else await pipeline(Readable.fromWeb(response.body), createWriteStream(target));
}
