/** Runs git in a view of the cache, and once more in a new view when the cache was emptied meanwhile. */
import { ActorError } from "../../../schemas/errors.ts";
import { gone, isGone } from "./cache-files.ts";
import { cacheEmptied } from "./repo-cache.ts";

/** A read may take minutes, so it is repeated once. */
const READS_MAX = 2;

interface ReadView extends Partial<Disposable>, Partial<AsyncDisposable> {
  isIntact(): Promise<boolean>;
}

export interface ReadOptions<T> {
  signal: AbortSignal;
  /** False once the input of `read` is used up, or part of its answer has been sent. */
  isRepeatable?: () => boolean;
  /** True for a result that a missing object may have caused. */
  isDoubtful?: (result: T) => boolean;
  /** Releases a doubtful result before the next read. */
  discard?: (result: T) => PromiseLike<void>;
}

/**
 * Resolves to the result of `read`. A process that fails may have missed files that somebody removed, even when the
 * view is whole again by now. So `read` runs once more, in a view made anew where need be. Refuses with `unavailable`
 * when that view is emptied too.
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
      // A refusal is about the repository or the request.
      if (error instanceof ActorError) throw error;
      if (!isLast && isRepeatable()) continue;
      throw isGone(error) || !(await view.isIntact()) ? cacheEmptied() : error;
    } finally {
      view[Symbol.dispose]?.();
      await view[Symbol.asyncDispose]?.();
    }
  }
}

/** Throws when somebody has emptied the cache, so that an object that was not found counts as not looked for. */
export async function checkIntact(view: Pick<ReadView, "isIntact">): Promise<void> {
  if (!(await view.isIntact())) throw gone("the view");
}
