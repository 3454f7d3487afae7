/** Makes the outcome of a page: stores its record, caches it for other crawls, and finds cached pages. */
import type { PageOutcome, RecordBlob } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn, TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { RECORD_REASON_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import type { StoredBlob } from "../../../runtime/store/blob-messages.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { isOlder } from "../load/last-modified.ts";
import type { PageAnswer } from "../load/page-loader.ts";
import { isPassingStatus } from "../load/passing-faults.ts";
import type { CachedPage, PageCache } from "./page-cache.ts";
import {
  errorOf,
  type LoadedPage,
  type PageRecordParts,
  pageRecord,
  pageRefresh,
  readPage,
} from "./page-record.ts";
import type { RecordWriter } from "./record-writer.ts";

export interface PageOutcomesParts extends PageRecordParts {
  records: RecordWriter;
  blobs: Pick<BlobStore, "get">;
  /** Places for copies of cached pages. Each account has a share. */
  copyPlaces: Pick<FairSemaphore, "take">;
  cache: PageCache;
  clock: Clock;
}

type Copied = Pick<
  Extract<PageOutcome, { kind: "fetched" }>,
  "blobs" | "jsonSource" | "storedBytes"
>;

export type PageRequest = Extract<TurnRequest, { type: "page" }>;

type TurnOfOutcomes = Pick<Turn, "account" | "job" | "turn">;

export class PageOutcomes {
  readonly #parts: PageOutcomesParts;
  readonly #turn: TurnOfOutcomes;
  readonly #request: CrawlRequest;

  constructor(parts: PageOutcomesParts, turn: TurnOfOutcomes, request: CrawlRequest) {
    this.#parts = parts;
    this.#turn = turn;
    this.#request = request;
  }

  /**
   * Returns the outcome of a page request. For a loaded page, stores its record; the record is durable when this
   * resolves.
   */
  async of(
    { index, url }: PageRequest,
    answer: PageAnswer,
    signal: AbortSignal,
  ): Promise<PageOutcome> {
    const { browserMs } = answer;
    switch (answer.kind) {
      case "page":
        return this.#page({ index, url, page: answer }, signal);
      case "redirect":
        return { kind: "redirected", index, to: answer.to, status: answer.status, browserMs };
      case "unmodified": {
        const { status, lastModifiedAt } = answer;
        const metadata = { status, url, ...(lastModifiedAt !== undefined && { lastModifiedAt }) };
        const reason = this.#notSince(lastModifiedAt);
        return { kind: "skipped", index, reason, metadata, browserMs };
      }
      case "download": {
        const { status, contentType, reason } = answer;
        const metadata = { status, url, ...(contentType !== undefined && { contentType }) };
        const settled = { index, metadata, browserMs };
        // If the start page is a download, the crawl has no other page, so the page counts as failed and not as
        // skipped.
        return index === 0
          ? {
              ...{ kind: "failed", ...settled, retry: false, blobs: [] },
              reason: `Cannot fetch the page: ${reason}`,
            }
          : { kind: "skipped", ...settled, reason: `The link leads to a download: ${reason}` };
      }
      case "failed": {
        const { reason, retry, status, browserLost } = answer;
        const metadata = status === undefined ? undefined : { status, url };
        const error = status === undefined ? undefined : errorOf(status);
        const why = error === undefined ? reason : `${error}; ${reason}`;
        return {
          ...{ kind: "failed", index, reason: clipped(why), retry, blobs: [], browserMs },
          ...(metadata && { metadata }),
          ...(browserLost && { browserLost }),
        };
      }
      default:
        return answer satisfies never;
    }
  }

  /** Returns the account's copy if it is recent enough. */
  find({ url }: PageRequest): Promise<CachedPage | undefined> {
    const { cache, clock } = this.#parts;
    return cache.find(url, clock.now());
  }

  /** Copies a cached page into this job. Resolves with undefined if the copy is gone. */
  async cached(
    { index }: PageRequest,
    found: CachedPage,
    signal: AbortSignal,
  ): Promise<PageOutcome | undefined> {
    const { metadata, links, reason, cachedAt } = found;
    const { lastModifiedAt } = metadata;
    if (isOlder({ status: 200, lastModifiedAt }, this.#request)) {
      return { kind: "skipped", index, reason: this.#notSince(lastModifiedAt), metadata, links };
    }
    const copied = await this.#copy(index, found, signal);
    if (copied === undefined) return undefined;
    return {
      ...{ kind: "fetched", index, ...copied, links, browserMs: 0 },
      metadata: { ...metadata, cachedAt },
      ...(reason !== undefined && { reason }),
    };
  }

  async #page(
    { index, url, page }: { index: number; url: string; page: LoadedPage },
    signal: AbortSignal,
  ): Promise<PageOutcome> {
    const { records, cache, clock } = this.#parts;
    const request = this.#request;
    const found = readPage(url, page);
    const to = pageRefresh(url, page, found);
    if (to !== undefined) {
      return { kind: "redirected", index, to, status: page.status, browserMs: page.browserMs };
    }
    if (isOlder(page, request)) return await this.#older({ index, url, page }, signal);
    const { body, source, metadata, links, reason, isWhole } = await pageRecord(
      this.#parts,
      { account: this.#turn.account, url, page, request, found },
      signal,
    );
    const [main, text] = await Promise.all([
      body.length > 0 ? records.write(this.#blobName(index), body) : undefined,
      source && records.write(this.#sourceName(index), source),
    ]);
    const blobs = main ? [recordBlob(main)] : [];
    const used = { browserMs: page.browserMs, storedBytes: sumOf(main, text) };
    if (isPassingStatus(page.status)) {
      const why = reason ?? `The server answered with status ${page.status}`;
      return { kind: "failed", index, reason: why, retry: true, metadata, blobs, ...used };
    }
    const jsonSource = (text || (request.formats.includes("json") && main) || undefined)?.name;
    const record = {
      metadata,
      blobs,
      ...(jsonSource !== undefined && { jsonSource }),
      links,
      ...(reason !== undefined && { reason }),
    };
    // The page is cached without waiting: its entry may get lost at any time anyway.
    if (page.status === 200 && isWhole) {
      void cache.keep(url, { ...record, cachedAt: clock.now() });
    }
    return { kind: "fetched", index, ...record, ...used };
  }

  /** Makes the outcome of an older page: the page is skipped and keeps only its metadata and links. */
  async #older(
    { index, url, page }: { index: number; url: string; page: LoadedPage },
    signal: AbortSignal,
  ): Promise<PageOutcome> {
    const request = { ...this.#request, formats: [] };
    const asked = { account: this.#turn.account, url, page, request };
    const { metadata, links } = await pageRecord(this.#parts, asked, signal);
    const { lastModifiedAt, browserMs } = page;
    const reason = this.#notSince(lastModifiedAt);
    return { kind: "skipped", index, reason, metadata, links, browserMs };
  }

  /** Copies the blobs. Resolves with undefined if the job that fetched the page is gone with its blobs. */
  async #copy(
    index: number,
    { blobs, jsonSource }: CachedPage,
    signal: AbortSignal,
  ): Promise<Copied | undefined> {
    const release = await this.#parts.copyPlaces.take(this.#turn.account, signal);
    try {
      const [main] = blobs;
      const copy = main && (await this.#copyBlob(main.name, this.#blobName(index), signal));
      const copied = { blobs: copy ? [recordBlob(copy)] : [], storedBytes: sumOf(copy) };
      if (jsonSource === undefined) return copied;
      if (copy && jsonSource === main?.name) return { ...copied, jsonSource: copy.name };
      const source = await this.#copyBlob(jsonSource, this.#sourceName(index), signal);
      return { ...copied, jsonSource: source.name, storedBytes: sumOf(copy, source) };
    } catch (error) {
      if (error instanceof ActorError && error.code === "not_found") return undefined;
      throw error;
    } finally {
      release();
    }
  }

  /** Copies a blob. Holds a few of its chunks in memory, because a record may have 60 MB. */
  async #copyBlob(from: string, to: string, signal: AbortSignal): Promise<StoredBlob> {
    const { blobs, records } = this.#parts;
    const chunks = blobs.get(from, { signal });
    const first = await chunks.next();
    const second = await chunks.next();
    if (second.done) return records.write(to, first.value ?? new Uint8Array());
    const all = async function* () {
      if (first.value) yield first.value;
      yield second.value;
      yield* chunks;
    };
    return records.writeLarge(to, all(), signal);
  }

  /** Each turn has a blob name of its own: a blob that an earlier turn reported must not change. */
  #blobName(index: number): string {
    return `crawl.${this.#turn.job}.${index}.${this.#turn.turn}`;
  }

  #sourceName(index: number): string {
    return `${this.#blobName(index)}.text`;
  }

  #notSince(lastModifiedAt: number | undefined): string {
    const since = new Date((this.#request.modifiedSince ?? 0) * 1_000).toISOString();
    return lastModifiedAt === undefined
      ? `The server says it was not modified since ${since}`
      : `Last modified ${new Date(lastModifiedAt).toISOString()}, before ${since}`;
  }
}

const recordBlob = ({ name, bytes }: StoredBlob): RecordBlob => ({ name, bytes });

const sumOf = (...blobs: readonly (StoredBlob | undefined)[]) =>
  blobs.reduce((sum, blob) => sum + (blob?.storedBytes ?? 0), 0);

const clipped = (reason: string) => reason.slice(0, RECORD_REASON_CHARS_MAX);
