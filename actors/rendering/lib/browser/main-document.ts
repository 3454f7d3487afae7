/**
 * Watches the page's main document: its address, its status, and whether it loaded. It uses raw browser events, which
 * arrive in order. Puppeteer delays its own events until the network has reported more about each response, sometimes
 * until after the end of the navigation.
 */
import type { CDPEvents, CDPSession, Page, Protocol } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { FailOnStatus } from "../../../../schemas/rendering/http/page-parameters.ts";
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import { EGRESS_FIELD } from "../../../egress/http-headers.ts";
import { hostOf, navigationError } from "./navigation-errors.ts";
import { sessionOf } from "./page-session.ts";
import type { FilterParameters } from "./request-filter.ts";

const ERROR_PAGE = "chrome-error://";

/** The latest request for the main document. A redirect changes its address. */
interface DocumentRequest {
  id: string;
  url: string;
  netError?: string;
}

interface Answer {
  id: string;
  url: string;
  status: number;
  isLabelled: boolean;
  bytes: number;
  /** Resolves with whether the whole response body arrived. */
  ended: PromiseWithResolvers<boolean>;
}

export class MainDocument implements Disposable {
  readonly #page: Page;
  readonly #frameId: string;
  readonly #egress: EgressProxy;
  readonly #session: CDPSession;
  readonly #hasPatterns: boolean;
  /** Whether the request itself contains the files of this document, so that no site serves them. */
  readonly #isSubmitted: boolean;
  #asked: DocumentRequest | undefined;
  #answer: Answer | undefined;
  readonly #watching = new DisposableStack();

  constructor(
    { page, frameId, egress }: { page: Page; frameId: string; egress: EgressProxy },
    { rejectRequestPattern = [], files }: FilterParameters & { files?: unknown } = {},
  ) {
    this.#isSubmitted = files !== undefined;
    this.#hasPatterns = rejectRequestPattern.length > 0;
    this.#page = page;
    this.#frameId = frameId;
    this.#egress = egress;
    this.#session = sessionOf(page);
    this.#watch("Network.requestWillBeSent", (event) => this.#onRequest(event));
    this.#watch("Network.responseReceived", (event) => this.#onAnswer(event));
    this.#watch("Network.dataReceived", (event) => this.#onBytes(event));
    this.#watch("Network.loadingFinished", (event) => this.#onEnd(event, true));
    this.#watch("Network.loadingFailed", (event) => {
      if (this.#asked?.id === event.requestId) {
        this.#asked.netError = event.errorText.replace("net::", "");
      }
      this.#onEnd(event, false);
    });
  }

  /** Stops watching. */
  [Symbol.dispose](): void {
    this.#watching.dispose();
  }

  /** Whether a document other than an error page has arrived. */
  get arrived(): boolean {
    return this.#answer !== undefined && !this.#page.url().startsWith(ERROR_PAGE);
  }

  /** The HTTP status with which the site answered for the document. Undefined for a submitted document. */
  get status(): number | undefined {
    return this.#isSubmitted ? undefined : this.#answer?.status;
  }

  /** Returns the refusal for a navigation that failed with this Chromium error. */
  failure(netError: string, address: string): ActorError {
    const url = this.#asked?.url ?? address;
    // This error means that the caller's own patterns blocked the document. They take precedence over an earlier
    // failure of the host in the proxy.
    if (this.#hasPatterns && netError === "ERR_BLOCKED_BY_CLIENT") return rejectedByPattern(url);
    return navigationError(netError, url, this.#egress.failureOf(url));
  }

  /** Throws if the page shows an error page of the browser or of the proxy instead of the document. */
  check(): void {
    const shown = this.#page.url();
    if (shown.startsWith(ERROR_PAGE)) {
      throw this.failure(this.#asked?.netError ?? "ERR_FAILED", shown);
    }
    if (this.#answer?.isLabelled !== true) return;
    const { url } = this.#answer;
    // A site could send this header too, but it cannot forge the failure that the proxy recorded.
    const failure = this.#egress.failureOf(url);
    if (failure !== undefined) throw navigationError("ERR_FAILED", url, failure);
  }

  /** Throws if the request refuses responses with this status. */
  #checkStatus(refused: FailOnStatus): void {
    if (refused === undefined || this.#answer === undefined) return;
    const { status, url } = this.#answer;
    const ofClass = status >= 500 ? "5xx" : "4xx";
    if (status < 400 || !(refused.includes(status) || refused.includes(ofClass))) return;
    const reason = `it answered ${status}, which failOnStatus names`;
    throw new ActorError("response_failed", `Cannot load ${hostOf(url)}: ${reason}`);
  }

  /**
   * Throws if the site answered with a refused status, or with an error status and an empty body. Otherwise the
   * result would be a blank page.
   */
  async checkContent(refused: FailOnStatus): Promise<void> {
    this.#checkStatus(refused);
    const answer = this.#answer;
    if (answer === undefined || answer.status < 400) return;
    if (!(await answer.ended.promise) || answer.bytes > 0) return;
    const what = `Cannot load ${hostOf(answer.url)}`;
    throw new ActorError(
      "response_failed",
      `${what}: it answered ${answer.status} without content`,
    );
  }

  #watch<Name extends keyof CDPEvents>(name: Name, heard: (event: CDPEvents[Name]) => void): void {
    this.#session.on(name, heard);
    this.#watching.defer(() => this.#session.off(name, heard));
  }

  #onRequest(event: Protocol.Network.RequestWillBeSentEvent): void {
    const { requestId, loaderId, frameId, type, request } = event;
    if (frameId !== this.#frameId || type !== "Document" || requestId !== loaderId) return;
    this.#asked = { id: requestId, url: request.url };
  }

  #onAnswer({ requestId, response }: Protocol.Network.ResponseReceivedEvent): void {
    if (this.#asked?.id !== requestId) return;
    const { url, status, headers } = response;
    const names = Object.keys(headers).map((name) => name.toLowerCase());
    const isLabelled = names.includes(EGRESS_FIELD.toLowerCase());
    const ended = Promise.withResolvers<boolean>();
    this.#answer = { id: requestId, url, status, isLabelled, bytes: 0, ended };
  }

  #onBytes({ requestId, dataLength }: Protocol.Network.DataReceivedEvent): void {
    if (this.#answer?.id === requestId) this.#answer.bytes += dataLength;
  }

  #onEnd({ requestId }: { requestId: string }, isWhole: boolean): void {
    if (this.#answer?.id === requestId) this.#answer.ended.resolve(isWhole);
  }
}

function rejectedByPattern(url: string): ActorError {
  const pointer = "/rejectRequestPattern";
  const message = `Expected no pattern that matches the page itself: ${shortened(url)}`;
  const text = `Cannot load ${hostOf(url)}: rejectRequestPattern matches its address`;
  return new ActorError("invalid_request", text, { faults: [{ pointer, message }] });
}

const shortened = (url: string) => (url.length > 200 ? `${url.slice(0, 199)}…` : url);
