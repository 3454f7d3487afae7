/** Writes the records of a crawl as one JSON document, body after body, without buffering it. */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { crawlJob, type RecordEntry } from "../../schemas/crawl/crawl-job.ts";
import type { CrawlQuery } from "../../schemas/crawl/http/crawl-answers.ts";
import { CRAWL_ANSWER_BYTES_MAX, CRAWL_LIST_MAX } from "../../schemas/crawl/limits.ts";
import { BLOB_CHUNK_BYTES } from "../../schemas/limits.ts";
import { success } from "../http/envelope.ts";
import { type Piece, readAhead } from "../http/read-ahead.ts";
import { wireRecord, wireSummary } from "./crawl-wire.ts";

/**
 * Maximum bytes and number of pieces that are prefetched for the client. Together with the prefetched chunks of a
 * blob, they are a third of the memory of a read.
 */
export const CRAWL_READ_AHEAD_BYTES_MAX = 4 * 1024 * 1024;
export const CRAWL_READ_AHEAD_MAX = 16;

interface CrawlReading extends Pick<CrawlQuery, "cursor" | "limit" | "status"> {
  account: string;
  job: string;
  signal: AbortSignal;
}

/**
 * Returns the document in pieces. A refusal by the job rejects before the first byte. If a later read fails, the
 * iteration of the document throws an error.
 */
export async function readCrawl(
  { actors, blobs }: { actors: ActorClient; blobs: Pick<BlobStore, "get"> },
  reading: CrawlReading,
): Promise<AsyncIterable<Uint8Array>> {
  const { account, job, status, limit = Number.POSITIVE_INFINITY, signal } = reading;
  const first = await list(reading.cursor, limit);
  return readAhead(pieces(), {
    wholeMax: BLOB_CHUNK_BYTES,
    bytesMax: CRAWL_READ_AHEAD_BYTES_MAX,
    countMax: CRAWL_READ_AHEAD_MAX,
  });

  async function* pieces(): AsyncGenerator<Piece, void, undefined> {
    // The text of the response before and after its result, because the result is written in parts.
    const [before = "", after = ""] = JSON.stringify(success("\0")).split('"\\u0000"');
    const head = JSON.stringify(wireSummary(job, first.summary)).slice(0, -1);
    let text = `${before}${head},"records":[`;
    let bytes = Buffer.byteLength(text) + 256;
    let records = 0;
    let page = first;
    let cursor: string | undefined;
    for (;;) {
      for (const [index, { entry, cursor: behind }] of page.entries.entries()) {
        const record = `${records > 0 ? "," : ""}${JSON.stringify(wireRecord(entry)).slice(0, -1)}`;
        const recordBytes = bytesOf(record, entry);
        if (records > 0 && bytes + recordBytes > CRAWL_ANSWER_BYTES_MAX) return yield end(cursor);
        bytes += recordBytes;
        records += 1;
        text += record;
        for (const { name, bytes: blobBytes } of entry.blobs) {
          if (blobBytes === 0) continue;
          yield Buffer.from(`${text},`);
          text = "";
          yield { bytes: blobBytes, read: () => blobs.get(name, { signal }) };
        }
        text += "}";
        cursor = behind;
        const isLast = index === page.entries.length - 1;
        if (records >= limit) return yield end(isLast && !page.more ? undefined : cursor);
      }
      if (!page.more || page.entries.length === 0) return yield end(undefined);
      yield Buffer.from(text);
      text = "";
      page = await list(cursor, limit - records);
    }

    function end(next: string | undefined): Uint8Array {
      const last = next === undefined ? "" : `,"cursor":${JSON.stringify(next)}`;
      return Buffer.from(`${text}]${last}}${after}`);
    }
  }

  function list(cursor: string | undefined, recordsMax: number) {
    const count = Math.min(recordsMax, CRAWL_LIST_MAX);
    const query = {
      account,
      count,
      ...(cursor !== undefined && { cursor }),
      ...(status && { status }),
    };
    return actors.call(crawlJob, job, "list", query, { signal });
  }
}

function bytesOf(record: string, { blobs }: RecordEntry): number {
  const bodies = blobs.map(({ bytes }) => bytes + 1);
  return bodies.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(record) + 1);
}
