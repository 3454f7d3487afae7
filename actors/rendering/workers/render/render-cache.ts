/** Caches small responses for a limited time, so that the same request of an account gets the same response. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { RENDER_CACHE_BYTES_MAX } from "../../../../schemas/rendering/limits.ts";
import { EpochMs } from "../../../../schemas/values.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { TtlStore } from "../../../runtime/store/ttl-store.ts";

/** A response as the cache stores it. */
export const KeptAnswer = z.object({
  until: EpochMs,
  base64: z.string(),
  pages: z.int().min(0).optional(),
  status: z.int().optional(),
});
type KeptAnswer = z.infer<typeof KeptAnswer>;

/** The fields of a task on which its response depends. */
interface CachedTask {
  account: string;
  parameters: unknown;
  cacheTtlS?: number | undefined;
}

interface Answer {
  bytes: Buffer;
  pages?: number;
  status?: number | undefined;
}

interface RenderCacheParts {
  store: Pick<TtlStore<KeptAnswer>, "get" | "put">;
  clock: Pick<Clock, "now">;
}

export class RenderCache {
  readonly #store: RenderCacheParts["store"];
  readonly #clock: RenderCacheParts["clock"];

  constructor({ store, clock }: RenderCacheParts) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Returns the cache entry for a task's response. Its key is computed once, because that takes long for a large
   * request.
   */
  place(message: string, task: CachedTask): CachePlace {
    const { cacheTtlS = 0 } = task;
    const key = cacheTtlS === 0 ? "" : keyOf(message, task);
    return new CachePlace({ store: this.#store, clock: this.#clock, key, cacheTtlS });
  }
}

/** The cache entry for the response to one task. */
export class CachePlace {
  readonly #store: RenderCacheParts["store"];
  readonly #clock: RenderCacheParts["clock"];
  readonly #key: string;
  readonly #cacheTtlS: number;

  /** Use `RenderCache.place`. */
  constructor(parts: RenderCacheParts & { key: string; cacheTtlS: number }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#key = parts.key;
    this.#cacheTtlS = parts.cacheTtlS;
  }

  /** Resolves to the cached response to the same task; undefined if there is none or the task accepts none. */
  async find(): Promise<Answer | undefined> {
    if (this.#cacheTtlS === 0) return undefined;
    const kept = await this.#store.get(this.#key);
    if (kept === undefined || kept.until <= this.#clock.now()) return undefined;
    const { base64, pages, status } = kept;
    return { bytes: Buffer.from(base64, "base64"), ...(pages !== undefined && { pages }), status };
  }

  /**
   * Passes the chunks on, and stores them after the last one was read. Responses above RENDER_CACHE_BYTES_MAX and
   * error responses of the site are not stored.
   */
  async *keep(
    chunks: AsyncIterable<Uint8Array>,
    about: () => Omit<Answer, "bytes">,
  ): AsyncGenerator<Uint8Array> {
    const kept: Uint8Array[] = [];
    let bytes = 0;
    if (this.#cacheTtlS === 0) return yield* chunks;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes <= RENDER_CACHE_BYTES_MAX) kept.push(chunk);
      yield chunk;
    }
    const { status, ...rest } = about();
    const cacheTtlS = this.#cacheTtlS;
    const isFine = status === undefined || status < 400;
    if (bytes > RENDER_CACHE_BYTES_MAX || !isFine) return;
    const until = Math.round(this.#clock.now() + cacheTtlS * 1_000);
    const base64 = Buffer.concat(kept).toString("base64");
    const answer = { until, base64, ...rest, ...(status !== undefined && { status }) };
    // The write is not awaited. If it fails, the page is simply rendered again.
    void this.#store.put(this.#key, answer, Math.ceil(cacheTtlS));
  }
}

function keyOf(message: string, { account, parameters }: CachedTask): string {
  const text = JSON.stringify([account, message, parameters]);
  return createHash("sha256").update(text).digest("hex");
}
