/** Keeps small answers for a while, so that the same request of an account gets the same answer. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { RENDER_CACHE_BYTES_MAX } from "../../../../schemas/rendering/limits.ts";
import { EpochMs } from "../../../../schemas/values.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { TtlStore } from "../../../runtime/store/ttl-store.ts";

/** An answer as it is stored. */
export const KeptAnswer = z.object({
  until: EpochMs,
  base64: z.string(),
  pages: z.int().min(0).optional(),
  status: z.int().optional(),
});
type KeptAnswer = z.infer<typeof KeptAnswer>;

/** The fields of a task that its answer depends on. */
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

  /** Resolves to the answer to the same task, if there is one and the task takes it. */
  async find(message: string, task: CachedTask): Promise<Answer | undefined> {
    if (!task.cacheTtlS) return undefined;
    const kept = await this.#store.get(keyOf(message, task));
    if (kept === undefined || kept.until <= this.#clock.now()) return undefined;
    const { base64, pages, status } = kept;
    return { bytes: Buffer.from(base64, "base64"), ...(pages !== undefined && { pages }), status };
  }

  /** Passes the chunks on, and keeps them once the last has been taken. An error of the site is not kept. */
  async *keep(
    message: string,
    task: CachedTask,
    chunks: AsyncIterable<Uint8Array>,
    about: () => Omit<Answer, "bytes">,
  ): AsyncGenerator<Uint8Array> {
    const kept: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes <= RENDER_CACHE_BYTES_MAX) kept.push(chunk);
      yield chunk;
    }
    const { status, ...rest } = about();
    const { cacheTtlS = 0 } = task;
    const isFine = status === undefined || status < 400;
    if (cacheTtlS === 0 || bytes > RENDER_CACHE_BYTES_MAX || !isFine) return;
    const until = Math.round(this.#clock.now() + cacheTtlS * 1_000);
    const base64 = Buffer.concat(kept).toString("base64");
    const answer = { until, base64, ...rest, ...(status !== undefined && { status }) };
    // The write goes without a wait. An answer that is not kept is rendered again.
    void this.#store.put(keyOf(message, task), answer, Math.ceil(cacheTtlS));
  }
}

function keyOf(message: string, { account, parameters }: CachedTask): string {
  const text = JSON.stringify([account, message, parameters]);
  return createHash("sha256").update(text).digest("hex");
}
