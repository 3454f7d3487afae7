/** Loads pages by HTTP: one request each, within limits of size and time. */

import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { ANSWER_SHOWN_CHARS, CONTENT_TYPE_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { isSuccessful } from "../../../../schemas/status-classes.ts";
import { EgressError } from "../../../egress/egress-error.ts";
import { EgressAgents, type EgressResponse, egressFetch } from "../../../egress/egress-fetch.ts";
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { start } from "../departure/departure.ts";
import { documentForm, looksBinary } from "./content-types.ts";
import { CrawlHeaders } from "./crawl-headers.ts";
import { decodeBody } from "./decode-body.ts";
import { FetchDeadline } from "./fetch-deadline.ts";
import { isUnmodified, lastModifiedAt } from "./last-modified.ts";
import type { PageAnswer, PageLoad, PageLoader } from "./page-loader.ts";
import { isPassing, isPassingStatus } from "./passing-faults.ts";
import { readBody } from "./read-body.ts";
import { pageRedirect } from "./refresh-target.ts";
import { awayMsOf } from "./retry-after.ts";
import { robotsTag } from "./robots-tag.ts";
import { PRODUCT_TOKEN } from "./user-agent.ts";

/** Idle connections that one job keeps, for each scheme and over all hosts. */
export const JOB_CONNECTIONS_MAX = 64;

interface HttpPageLoaderParts {
  guard: EgressGuard;
  clock: Clock;
  request: CrawlRequest;
  fetchMs: number;
  /** Certificate authorities in PEM; by default Node's own. */
  ca?: string | undefined;
}

export class HttpPageLoader implements PageLoader {
  readonly #parts: HttpPageLoaderParts;
  readonly #agents: EgressAgents;
  readonly #headers: CrawlHeaders;

  constructor(parts: HttpPageLoaderParts) {
    this.#parts = parts;
    const { guard, ca } = parts;
    this.#agents = new EgressAgents({
      guard,
      idleMax: JOB_CONNECTIONS_MAX,
      ...(ca !== undefined && { ca }),
    });
    this.#headers = new CrawlHeaders(parts.request);
  }

  async load(page: PageLoad): Promise<PageAnswer> {
    const { clock, fetchMs } = this.#parts;
    const deadline = new FetchDeadline(page.signal, fetchMs, clock);
    let response: EgressResponse | undefined;
    try {
      response = await egressFetch(page.url, {
        agents: this.#agents,
        signal: deadline.signal,
        headers: page.isStart
          ? this.#headers.forFile(page.url, clock.now())
          : this.#headers.forPage(page.url, clock.now()),
        // `readBody` cuts a body that is too long. `egressFetch` would throw an error instead, so it gets no limit.
        bytesMax: Number.POSITIVE_INFINITY,
        redirectsMax: 0,
        onSending: () => start(page),
        onSent: page.onStarted,
        oneMore: () => deadline.pauseFor(page.oneMore()),
      });
      try {
        return await this.#answer(response, page, deadline);
      } finally {
        // A body that was not read to its end closes its connection.
        response.body.destroy();
      }
    } catch (error) {
      page.signal.throwIfAborted();
      const away = response && this.#awayOf(response);
      if (deadline.passed) {
        return { ...failed(`it took longer than ${fetchMs} ms`, { retry: true }), ...away };
      }
      if (!(error instanceof EgressError)) throw error;
      const retry = isPassing(error);
      return { kind: "failed", reason: error.message, retry, ...NO_ANSWER, ...away };
    } finally {
      deadline.clear();
    }
  }

  async close(): Promise<void> {
    this.#agents.close();
  }

  async #answer(
    response: EgressResponse,
    page: PageLoad,
    deadline: FetchDeadline,
  ): Promise<PageAnswer> {
    const { status, headers } = response;
    const target = pageRedirect(page.url, status, headers);
    if (target?.url !== undefined)
      return { kind: "redirect", to: target.url, status, browserMs: 0 };
    if (target !== undefined) return failed(target.fault, { status });
    const away = this.#awayOf(response);
    const contentType = headers.get("content-type")?.slice(0, CONTENT_TYPE_CHARS_MAX);
    const noText = (what: string) => ({
      ...failed(what, { status, retry: isPassingStatus(status) }),
      ...away,
    });
    const download = (reason: string): PageAnswer =>
      isSuccessful(status)
        ? { kind: "download", status, contentType, reason, browserMs: 0 }
        : noText(reason);
    const modified = { lastModifiedAt: lastModifiedAt(headers) };
    if (isUnmodified(response, this.#parts.request)) {
      return { kind: "unmodified", status, ...modified, browserMs: 0 };
    }
    if (documentForm(contentType) === "other") {
      return download(
        `its content type is "${contentType?.slice(0, ANSWER_SHOWN_CHARS)}", not text`,
      );
    }
    const coding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
    if (!CODINGS.has(coding)) {
      return noText(`its content coding "${coding.slice(0, ANSWER_SHOWN_CHARS)}" is not known`);
    }
    const { bytes, truncated } = await readBody(response.body, () =>
      deadline.pauseFor(page.onLarge()),
    );
    if (contentType === undefined && looksBinary(bytes)) {
      return download("it names no content type, and is not text");
    }
    return {
      kind: "page",
      status,
      html: decodeBody(bytes, contentType).text,
      truncated,
      contentType,
      ...modified,
      awayMs: away.awayMs,
      ...robotsTag(headers.get("x-robots-tag"), PRODUCT_TOKEN),
      browserMs: 0,
    };
  }

  #awayOf({ status, headers }: EgressResponse): { awayMs?: number } {
    const awayMs = awayMsOf(status, headers.get("retry-after"), this.#parts.clock.now());
    return awayMs === undefined ? {} : { awayMs };
  }
}

const NO_ANSWER = { status: undefined, browserMs: 0 };
/** Encodings that egressFetch decodes. */
const CODINGS = new Set(["", "identity", "gzip", "x-gzip", "deflate", "br", "zstd"]);

function failed(
  what: string,
  { status, retry = false }: { status?: number; retry?: boolean },
): PageAnswer {
  const reason = `Cannot fetch the page: ${what}`;
  return { kind: "failed", reason, retry, status, browserMs: 0 };
}
