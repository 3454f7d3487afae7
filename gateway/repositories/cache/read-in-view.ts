/** Runs git in a view of the cache, and once more in a new view when the cache was emptied meanwhile. */
import { ActorError } from "../../../schemas/errors.ts";
import { gone, isGone } from "./cache-files.ts";
import { cacheEmptied } from "./repo-cache.ts";

/** Attempts of one read. A read may take minutes, so it is repeated only once. */
const READS_MAX = 2;

interface ReadView extends Partial<Disposable>, Partial<AsyncDisposable> {
  isIntact(): Promise<boolean>;
}

export interface ReadOptions<T> {
  signal: AbortSignal;
  /** False after the input of `read` was consumed, or part of its response was sent. */
  isRepeatable?: () => boolean;
  /** True for a result that a missing object may have caused. */
  isDoubtful?: (result: T) => boolean;
  /** Releases a doubtful result before the next read. */
  discard?: (result: T) => PromiseLike<void>;
}

/**
 * Resolves to the result of `read`. If `read` fails or its result is doubtful, another process may have removed files
 * that git needed, even if the view is complete again now. Therefore a repeatable `read` runs a second time, in a
 * view that is opened anew. Refuses with `unavailable` if that view is emptied too.
 */
export async function readInView<V extends ReadView, T>(
  open: () => Promise<V>,
  read: (view: V, isLast: boolean) => Promise<T>,
  { signal, isRepeatable = () => true, isDoubtful = () => false, discard }: ReadOptions<T>,
): Promise<T> {
  for (let reads = 1; ; reads++) {
    const isLast = reads >= READS_MAX || !isRepeatable();
    const view = await open();
    try {
      const result = await read(view, isLast);
      if (isLast || !isDoubtful(result)) return result;
      await discard?.(result);
    } catch (error) {
      signal.throwIfAborted();
      // A refusal is caused by the repository or the request, not by the cache, so it is not retried.
      if (error instanceof ActorError) throw error;
      if (!isLast && isRepeatable()) continue;
      throw isGone(error) || !(await view.isIntact()) ? cacheEmptied() : error;
    } finally {
      view[Symbol.dispose]?.();
      await view[Symbol.asyncDispose]?.();
    }
  }
}

/**
 * Throws if another process has emptied the cache. A missing object is then no proof that the repository lacks it.
 */
export async function checkIntact(view: Pick<ReadView, "isIntact">): Promise<void> {
  if (!(await view.isIntact())) throw gone("the view");
}
