/** Types that all outputs of a page share: the loaded page that an output reads, and its result. */
import { PRINT_TIMEOUT_MS } from "../../../../../schemas/limits.ts";
import type { ContentRequest, PageMeta } from "../../../../../schemas/rendering/http/page-calls.ts";
import type { PageReport } from "../../../../../schemas/rendering/http/page-report.ts";
import type { Limits } from "../../../lib/browser/load-page.ts";
import type { MainDocument } from "../../../lib/browser/main-document.ts";
import type { RenderContext } from "../../../lib/browser/render-context.ts";
import type { ThreadCaller } from "../../../lib/threads/thread-pool.ts";

export interface LoadedPage {
  context: RenderContext;
  document: Pick<MainDocument, "check" | "status">;
  /** The limits for reading from the page; `ms` is the maximum wait for content that is still loading. */
  limits: Limits & { ms: number };
}

/** The parameters of every page that an output may read. */
export type PageParameters = ContentRequest;

/** The result and the other fields of the response's JSON object. */
export interface ReadAnswer<R> {
  result: R;
  meta?: PageMeta;
  report?: PageReport;
}

/**
 * Creates the response from the values that were read. The page is already released then, and its browser time has
 * ended. Work on threads is done for the caller.
 */
export type Making<A> = (caller: ThreadCaller) => Promise<A>;

/** Reads from a loaded page the values that the response needs. */
export type Output<P, A> = (page: LoadedPage, parameters: P) => Promise<Making<A>>;

/** Returns the time limit for reading or capturing a loaded page: `actionTimeout`, but at most PRINT_TIMEOUT_MS. */
export function actionMs({ actionTimeout }: Pick<PageParameters, "actionTimeout">): number {
  return Math.min(PRINT_TIMEOUT_MS, actionTimeout ?? Number.POSITIVE_INFINITY);
}
