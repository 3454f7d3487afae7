/**
 * Records what a page does while it loads, so that an incompletely loaded page is not mistaken for a complete one.
 */
import type { CDPEvents, HTTPRequest, HTTPResponse, Protocol } from "puppeteer-core";
import type { PageReport } from "../../../../schemas/rendering/http/page-report.ts";
import { REPORT_ENTRIES_MAX, REPORT_TEXT_CHARS_MAX } from "../../../../schemas/rendering/limits.ts";
import { sessionOf } from "../../lib/browser/page-session.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";

type Report = Omit<PageReport, "timings" | "status">;

export class PageRecord implements Disposable {
  readonly #context: RenderContext;
  readonly #failed: PageReport["failed"] = [];
  readonly #errors: string[] = [];
  readonly #recording = new DisposableStack();
  #requests = 0;
  #omitted = 0;
  /** The latest request for the main document. */
  #document: HTTPRequest | undefined;

  /** Records from now on, so construct it before the page loads. */
  constructor(context: RenderContext) {
    this.#context = context;
    const { page } = context;
    const session = sessionOf(page);
    const requested = (request: HTTPRequest) => this.#onRequest(request);
    const responded = (response: HTTPResponse) => this.#onResponse(response);
    const failed = (request: HTTPRequest) => this.#onFailure(request);
    page.on("request", requested).on("response", responded).on("requestfailed", failed);
    this.#recording.defer(() => {
      page.off("request", requested).off("response", responded).off("requestfailed", failed);
    });
    const said = (event: CDPEvents["Runtime.consoleAPICalled"]) => {
      if (event.type === "error" || event.type === "assert") {
        this.#add(this.#errors, clipped(event.args.map(textOf).join(" ")));
      }
    };
    const thrown = ({ exceptionDetails }: CDPEvents["Runtime.exceptionThrown"]) => {
      const { text, exception } = exceptionDetails;
      this.#add(this.#errors, clipped(exception ? textOf(exception) : text));
    };
    session.on("Runtime.consoleAPICalled", said).on("Runtime.exceptionThrown", thrown);
    this.#recording.defer(() => {
      session.off("Runtime.consoleAPICalled", said).off("Runtime.exceptionThrown", thrown);
    });
    context.hearAll();
  }

  /** Returns what was recorded so far. */
  report(): Report {
    const { page, egress } = this.#context;
    const { received, sent } = egress.bytes;
    const chain = this.#document?.redirectChain() ?? [];
    return {
      url: clipped(page.url()),
      redirects: chain.slice(0, REPORT_ENTRIES_MAX).map((request) => clipped(request.url())),
      requests: this.#requests,
      failed: this.#failed,
      errors: this.#errors,
      omitted: this.#omitted,
      bytes: { received, sent },
    };
  }

  [Symbol.dispose](): void {
    this.#recording.dispose();
  }

  #onRequest(request: HTTPRequest): void {
    this.#requests += 1;
    const { page } = this.#context;
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) {
      this.#document = request;
    }
  }

  #onResponse(response: HTTPResponse): void {
    const status = response.status();
    // For addresses that the egress guard refuses, the proxy responds with an error status. `#fail` reads the reason
    // from the proxy.
    if (status >= 400) this.#fail(response.request(), `it answered ${status}`);
  }

  #onFailure(request: HTTPRequest): void {
    const netError = request.failure()?.errorText.replace("net::", "") ?? "it failed";
    this.#fail(request, netError);
  }

  #fail(request: HTTPRequest, found: string): void {
    const url = request.url();
    const refusal = this.#context.egress.failureOf(url)?.message;
    const reason = refusal === undefined ? found : refusal.slice(refusal.indexOf(": ") + 2);
    const entry = { url: clipped(url), type: request.resourceType(), reason: clipped(reason) };
    // A request that got an error status, or a response of the proxy, fails afterwards too. It must be recorded only
    // once.
    if (this.#failed.some((known) => known.url === entry.url)) return;
    this.#add(this.#failed, entry);
  }

  #add<T>(list: T[], entry: T): void {
    if (list.length < REPORT_ENTRIES_MAX) list.push(entry);
    else this.#omitted += 1;
  }
}

function textOf({ description, value, unserializableValue, type }: Protocol.Runtime.RemoteObject) {
  if (description !== undefined) return description.split("\n")[0] ?? "";
  return String(value ?? unserializableValue ?? type);
}

const clipped = (text: string) =>
  (text.length > REPORT_TEXT_CHARS_MAX
    ? `${text.slice(0, REPORT_TEXT_CHARS_MAX - 1)}…`
    : text
  ).toWellFormed();
