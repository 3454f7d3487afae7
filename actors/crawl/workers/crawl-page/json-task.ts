/** The task that extracts data from a fetched page: reads its blob, asks models, and stores the answer. */
import { envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type RecordBlob } from "../../../../schemas/crawl/crawl-job.ts";
import type { crawlPage } from "../../../../schemas/crawl/crawl-page.ts";
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { RECORD_REASON_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { BLOB_CHUNK_BYTES, TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import {
  JSON_PAGE_CHARS_MAX,
  type JsonExtractor,
  type JsonQuestion,
} from "../../../rendering/lib/ai/json-extractor.ts";
import type { MarkdownPool } from "../../../rendering/lib/extract/markdown-pool.ts";
import { untilKeyOpens } from "../../../rendering/lib/request-keys/request-keys.ts";
import type { ThreadCaller } from "../../../rendering/lib/threads/thread-pool.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import type { Semaphore } from "../../../runtime/lib/semaphore.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import type { WorkerDefinition } from "../../../runtime/workers/define-worker.ts";
import type { HeldJob, JobName } from "../../lib/records/held-jobs.ts";

type Tasks = WorkerDefinition<typeof crawlPage.messages>;

export interface JsonTaskParts {
  blobs: Pick<BlobStore, "get" | "put" | "size">;
  extractor: Pick<JsonExtractor, "extract">;
  markdown: Pick<MarkdownPool, "convert">;
  /**
   * Limits the pages of this worker in the queue of the Markdown pool. Turns share this semaphore, so that neither a
   * turn nor a JSON task finds the queue full.
   */
  markdownPlaces: Pick<Semaphore, "take">;
  /** Places for large pages. Turns share this semaphore, and each account has a share. */
  largePlaces: Pick<FairSemaphore, "take">;
  /** Returns the job's request, and whether the job has ended. */
  hold: (job: JobName) => Promise<JobOfTask>;
  clock: Pick<Clock, "monotonic" | "wait">;
}

interface StoredAnswer {
  blob: RecordBlob;
  /** Bytes of the blob in its stream. */
  storedBytes: number;
}

type JobOfTask = Pick<HeldJob, "ended" | "release"> & {
  request: Pick<CrawlRequest, "jsonOptions">;
};

/** Makes the handler of `crawl-page.json`. */
export function jsonTask(parts: JsonTaskParts): Tasks["handlers"]["json"] {
  const { blobs, extractor, markdown, markdownPlaces, largePlaces, hold, clock } = parts;
  return async ({ account, job, index, url, blob }, context) => {
    const { attempt } = context;
    const name = `crawl.${job}.${index}.json`;
    // An earlier attempt may have stored an answer. It must be used, because a model would give a different answer
    // now.
    const earlier = await blobs.size(name);
    if (earlier !== undefined) return extracted(earlierAnswer(name, earlier));

    const held = await untilKeyOpens(clock, () => hold({ account, job }), context.signal);
    try {
      const ended = await held.ended().catch(retryTask);
      // The job has ended and needs no answer, and a call of a model costs money.
      if (ended.aborted) return {};
      const signal = AbortSignal.any([context.signal, ended]);
      return await extractNow(held.request, signal).catch((error: unknown) => {
        if (ended.aborted) return {};
        throw error;
      });
    } finally {
      held.release();
    }

    async function extractNow({ jsonOptions }: JobOfTask["request"], signal: AbortSignal) {
      const caller = { account, signal };
      const text = await textOf(blob, url, caller);
      const outcome = await extractor.extract({ url, text }, questionOf(jsonOptions), caller);
      if (outcome.kind === "failed") {
        if (outcome.retry && attempt < TASK_TRIES_MAX) throw new Error(outcome.reason);
        return extracted({ reason: clipped(outcome.reason) });
      }
      const { json, reason } = outcome;
      const stored = await store(name, Buffer.from(`"json":${json}`), signal);
      return extracted({ ...stored, ...(reason !== undefined && { reason }) });
    }

    function extracted(found: Partial<StoredAnswer> & { reason?: string }) {
      return { send: [envelope(crawlJob, job, "jsonExtracted", { index, ...found })] };
    }
  };

  /**
   * Returns the text of a page for the model: the Markdown of its record, or the HTML converted to Markdown, because
   * Markdown is the shortest readable form. A large page needs a place until its text is cut.
   */
  async function textOf(blob: string, url: string, caller: ThreadCaller): Promise<string> {
    const { account, signal } = caller;
    const isLarge = ((await blobs.size(blob)) ?? 0) > BLOB_CHUNK_BYTES;
    const release = isLarge ? await largePlaces.take(account, signal) : undefined;
    try {
      return cut(await wholeTextOf(blob, url, caller));
    } finally {
      release?.();
    }
  }

  async function wholeTextOf(blob: string, url: string, caller: ThreadCaller): Promise<string> {
    const { signal } = caller;
    const page = JSON.parse(`{${await readAll(blobs.get(blob, { signal }))}}`);
    if (typeof page.markdown === "string") return page.markdown;
    if (typeof page.html !== "string") {
      throw new ActorError("invalid_request", "Cannot extract JSON: the page has no text");
    }
    const giveBack = await markdownPlaces.take(signal);
    const made = await markdown
      .convert({ html: page.html, baseUrl: url }, caller)
      .catch(retryTask)
      .finally(giveBack);
    if (made.kind === "made") return made.markdown;
    throw new ActorError("invalid_request", `Cannot extract JSON: ${made.reason}`);
  }

  /** Two attempts may end together. The first stored answer counts. */
  async function store(
    name: string,
    content: Uint8Array,
    signal: AbortSignal,
  ): Promise<StoredAnswer> {
    try {
      const { bytes, storedBytes } = await blobs.put(name, content, { signal });
      return { blob: { name, bytes }, storedBytes };
    } catch (error) {
      if (!(error instanceof ActorError && error.code === "conflict")) throw error;
      const bytes = await blobs.size(name);
      if (bytes === undefined) throw error;
      return earlierAnswer(name, bytes);
    }
  }
}

async function readAll(blob: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of blob) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/**
 * Returns the characters of a text that a model may get, and one more, which shows that the text was longer. Copies
 * them, because a slice would keep the whole text in memory while the model works.
 */
function cut(text: string): string {
  if (text.length <= JSON_PAGE_CHARS_MAX + 1) return text;
  const start = text.slice(0, JSON_PAGE_CHARS_MAX + 1);
  return Buffer.from(start, "utf16le").toString("utf16le");
}

/** Returns the answer of another attempt. The store does not say how far it could compress the bytes. */
const earlierAnswer = (name: string, bytes: number): StoredAnswer => ({
  blob: { name, bytes },
  storedBytes: bytes,
});

/** Returns the message to the job for a task that has failed and is not retried. The page keeps its other formats. */
export const jsonFailure: Tasks["failures"]["json"] = ({ job, index }, { message }) => {
  const reason = message.startsWith("Cannot extract JSON")
    ? message
    : `Cannot extract JSON: ${message}`;
  return [envelope(crawlJob, job, "jsonExtracted", { index, reason: clipped(reason) })];
};

/**
 * Rethrows a refusal as an ordinary error, so that the task is retried: the queue was full, or the job was
 * unreachable.
 */
function retryTask(error: unknown): never {
  if (error instanceof ActorError) throw new Error(error.message, { cause: error });
  throw error;
}

function questionOf(options: CrawlRequest["jsonOptions"]): JsonQuestion {
  return {
    prompt: options?.prompt,
    schema: options?.response_format?.json_schema,
    customAi: options?.custom_ai,
  };
}

function clipped(reason: string): string {
  return reason.length <= RECORD_REASON_CHARS_MAX
    ? reason
    : `${reason.slice(0, RECORD_REASON_CHARS_MAX - 1)}…`;
}
