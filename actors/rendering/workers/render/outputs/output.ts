/** Types that every output of a page shares: the loaded page that it reads, and its result. */
import { PRINT_TIMEOUT_MS } from "../../../../../schemas/limits.ts";
import type { ContentRequest, PageMeta } from "../../../../../schemas/rendering/http/page-calls.ts";
import type { PageReport } from "../../../../../schemas/rendering/http/page-report.ts";
import type { Limits } from "../../../lib/browser/load-page.ts";
import type { MainDocument } from "../../../lib/browser/main-document.ts";
import type { RenderContext } from "../../../lib/browser/render-context.ts";

export interface LoadedPage {
  context: RenderContext;
  document: Pick<MainDocument, "check" | "status">;
  /** The time in which the output takes what it needs. */
  limits: Limits & { ms: number };
}

/** The parameters of every page that an output may use. */
export type PageParameters = ContentRequest;

/** The members of an answer's envelope. */
export interface ReadAnswer<R> {
  result: R;
  meta?: PageMeta;
  report?: PageReport;
}

/** Makes the answer from what was taken. By then the page has gone, and its browser time is over. */
export type Making<A> = (signal: AbortSignal) => Promise<A>;

/** Takes from a loaded page what the answer needs. */
export type Output<P, A> = (page: LoadedPage, parameters: P) => Promise<Making<A>>;

/** Milliseconds that the action with a loaded page may take. */
export function actionMs({ actionTimeout }: Pick<PageParameters, "actionTimeout">): number {
  return Math.min(PRINT_TIMEOUT_MS, actionTimeout ?? Number.POSITIVE_INFINITY);
}
