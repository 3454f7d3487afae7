/** Watches what the page itself is: where it comes from, and whether it came at all. */
import type { HTTPRequest, HTTPResponse, Page } from "puppeteer-core";
import { ActorError } from "../../schemas/errors.ts";
import type { EgressProxy } from "../egress/egress-proxy.ts";
import { hostOf, navigationError } from "./navigation-errors.ts";

/** The proxy's own answers carry it. */
const EGRESS_HEADER = "x-trunkline-egress";
const ERROR_PAGE = "chrome-error://";

export class MainDocument {
  readonly #page: Page;
  readonly #egress: EgressProxy;
  #request: HTTPRequest | undefined;
  #response: HTTPResponse | undefined;

  constructor(page: Page, egress: EgressProxy) {
    this.#page = page;
    this.#egress = egress;
    page.on("request", (request) => {
      if (this.#isOfPage(request)) this.#request = request;
    });
    page.on("response", (response) => {
      if (this.#isOfPage(response.request())) this.#response = response;
    });
  }

  /** Whether anything but the blank page has come. */
  get arrived(): boolean {
    return this.#response !== undefined && !this.#page.url().startsWith(ERROR_PAGE);
  }

  /** The refusal for a navigation that failed so. */
  failure(netError: string, address: string): ActorError {
    const url = this.#request?.url() ?? address;
    return navigationError(netError, url, this.#egress.failureOf(url));
  }

  /** Throws when what the page shows is not the document, but that it could not be had. */
  check(): void {
    const shown = this.#page.url();
    if (shown.startsWith(ERROR_PAGE)) {
      const netError = this.#request?.failure()?.errorText.replace("net::", "");
      throw this.failure(netError ?? "ERR_FAILED", shown);
    }
    const response = this.#response;
    if (response?.headers()[EGRESS_HEADER] === undefined) return;
    // A site may send such a header too; what the proxy noted it cannot forge.
    const failure = this.#egress.failureOf(response.url());
    if (failure !== undefined) throw navigationError("ERR_FAILED", response.url(), failure);
  }

  /** Throws when the site answered an error with nothing in it: a blank page would hide that. */
  async checkContent(): Promise<void> {
    const response = this.#response;
    if (response === undefined || response.status() < 400) return;
    // A body the browser does not have any more was not empty.
    const body = await response.buffer().catch(() => undefined);
    if (body?.length === 0) {
      const what = `Cannot load ${hostOf(response.url())}`;
      throw new ActorError(
        "response_failed",
        `${what}: it answered ${response.status()} without content`,
      );
    }
  }

  #isOfPage(request: HTTPRequest): boolean {
    return request.isNavigationRequest() && request.frame() === this.#page.mainFrame();
  }
}
