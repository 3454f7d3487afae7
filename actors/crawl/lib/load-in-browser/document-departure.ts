/**
 * The departure of a document's request from a browser: in its moment or not at all.
 *
 * Browsers connect when they like, and repeat failed requests. An http: request passes our proxy completely. The
 * proxy recognises it by a mark and holds it until its moment. An https: request is invisible to the proxy. The
 * browser reports when it sends one. Until a response arrives the proxy cuts its tunnels as soon as the request must
 * not leave, since the browser would repeat it.
 */
import { setImmediate as pollAgain } from "node:timers/promises";
import type { CDPSession, Protocol } from "puppeteer-core";
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import { MARK_HEADER, type Mark } from "../../../egress/marked-requests.ts";
import type { Departure } from "../departure/departure.ts";

type SendInfo = Protocol.Network.RequestWillBeSentExtraInfoEvent;

export interface DepartureParts {
  url: URL;
  leave: Departure;
  egress: EgressProxy;
  session: CDPSession;
}

export class DocumentDeparture implements Disposable {
  readonly #parts: DepartureParts;
  readonly #mark: Mark | undefined;
  /** Requests with a moment that have not left yet. */
  #moments = 1;
  #hasStarted = false;
  /** The browser has reported a request that is not reported to the site yet. */
  #isSending = false;
  #hasEnded = false;
  #tunnels: Disposable | undefined;
  #stopWatching = () => {};

  constructor(parts: DepartureParts) {
    this.#parts = parts;
    const { url, egress } = parts;
    if (url.protocol !== "http:") return;
    this.#mark = egress.mark({
      admit: () => this.#admit(),
      mayLeave: () => this.#leaveNow(),
      onSent: () => this.#onStarted(),
    });
  }

  /** Header fields that the request needs. */
  get headers(): Record<string, string> {
    return this.#mark === undefined ? {} : { [MARK_HEADER]: this.#mark.value };
  }

  /**
   * Resolves with whether the browser may continue, when it may. An http: request continues early and waits in our
   * proxy.
   */
  async mayGoOn(): Promise<boolean> {
    if (this.#mark === undefined) await this.#due();
    return this.#mayLeave();
  }

  /** Prepares for the browser's request, just before it continues. */
  release(networkId: string): void {
    if (this.#mark !== undefined) return;
    const { url, leave, egress, session } = this.#parts;
    leave.onUnseen();
    let isBroken = false;
    this.#tunnels = egress.holdTunnels(url, {
      mayPass: () => !isBroken && this.#mayLeave(),
      // A repetition of any request would be one without a turn.
      onUnanswered() {
        isBroken = true;
      },
    });
    const onSend = ({ requestId }: SendInfo) => {
      if (requestId === networkId) void this.#onSend();
    };
    session.on("Network.requestWillBeSentExtraInfo", onSend);
    // The browser runs commands in order. So `Network` is enabled before the request continues, and disabled before
    // its next user enables it.
    session.send("Network.enable").catch(() => {});
    this.#stopWatching = () => {
      this.#stopWatching = () => {};
      session.off("Network.requestWillBeSentExtraInfo", onSend);
      session.send("Network.disable").catch(() => {});
    };
  }

  /** Records a response. A request that nobody saw was answered by a cache, or has left by now. */
  arrived(): void {
    this.#letGo();
    // The browser does not report requests with credentials.
    if (!this.#hasStarted || this.#moments > 0 || this.#isSending) this.#onStarted();
  }

  /**
   * Records that the browser has given up its request. Its tunnels need no cut any more, since the next request may
   * need one before this page is reset.
   */
  failed(): void {
    this.#letGo();
  }

  /** Forbids further requests. The caller disposes of this when the browser has stopped. */
  end(): void {
    this.#hasEnded = true;
    this.#mark?.[Symbol.dispose]();
  }

  /** Waits for the moment of another request for the same document. Resolves with whether it may leave. */
  async oneMore(): Promise<boolean> {
    if (this.#isSending) this.#onStarted();
    const isGranted = await this.#parts.leave.oneMore();
    if (isGranted) this.#moments += 1;
    return isGranted;
  }

  [Symbol.dispose](): void {
    this.end();
    this.#letGo();
  }

  #letGo(): void {
    this.#stopWatching();
    this.#tunnels?.[Symbol.dispose]();
  }

  async #admit(): Promise<boolean> {
    if (this.#moments === 0 && !(await this.oneMore())) return false;
    this.#moments -= 1;
    return this.#mayLeave();
  }

  #mayLeave(): boolean {
    return !this.#hasEnded && this.#parts.leave.mayLeave();
  }

  async #leaveNow(): Promise<boolean> {
    await this.#due();
    if (!this.#hasEnded) this.#parts.leave.onStarting();
    return this.#mayLeave();
  }

  async #due(): Promise<void> {
    await this.#parts.leave.due().catch(() => {
      // In this case the request must not leave.
    });
  }

  async #onSend(): Promise<void> {
    const { leave, session } = this.#parts;
    if (this.#hasEnded) return;
    leave.onStarting();
    this.#moments = Math.max(0, this.#moments - 1);
    this.#isSending = true;
    // The browser reports the request just before sending it, in one step of the thread that answers this command.
    await session.send("Network.getCookies", { urls: [] }).catch(() => {});
    // Bytes written by then pass our proxy before this continues.
    await pollAgain();
    if (this.#isSending) this.#onStarted();
  }

  #onStarted(): void {
    this.#hasStarted = true;
    this.#isSending = false;
    this.#parts.leave.onStarted();
  }
}
