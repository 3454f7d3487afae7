/**
 * Lets a browser send a document's request only within its time window. Browsers connect at times of their choice,
 * and repeat failed requests. For http: addresses, our proxy sees the request, recognises it by a mark (a header
 * field) and holds it until the start time. For https: addresses, the proxy cannot see the request, but the browser
 * reports when it sends one. If such a request must not leave, the proxy cuts its tunnels until a response arrives,
 * because the browser would repeat the request.
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
  /** Number of requests that have a time window and have not left yet. */
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
   * Waits until the browser may continue with the request. Resolves with false if the request must not leave. An
   * http: request continues immediately, and waits in our proxy.
   */
  async mayGoOn(): Promise<boolean> {
    if (this.#mark === undefined) await this.#due();
    return this.#mayLeave();
  }

  /**
   * The caller calls this just before the browser continues with the request. For https:, this watches the tunnels
   * and the browser's report of the request.
   */
  release(networkId: string): void {
    if (this.#mark !== undefined) return;
    const { url, leave, egress, session } = this.#parts;
    leave.onUnseen();
    let isBroken = false;
    this.#tunnels = egress.holdTunnels(url, {
      mayPass: () => !isBroken && this.#mayLeave(),
      // A connection closed without a response. The browser would repeat the request, and the repetition would have
      // no turn. So no more bytes may pass.
      onUnanswered() {
        isBroken = true;
      },
    });
    const onSend = ({ requestId }: SendInfo) => {
      if (requestId === networkId) void this.#onSend();
    };
    session.on("Network.requestWillBeSentExtraInfo", onSend);
    // The browser runs commands in order. So `Network` is enabled before the request continues. For the same reason,
    // the later `Network.disable` comes before the next `Network.enable`.
    session.send("Network.enable").catch(() => {});
    this.#stopWatching = () => {
      this.#stopWatching = () => {};
      session.off("Network.requestWillBeSentExtraInfo", onSend);
      session.send("Network.disable").catch(() => {});
    };
  }

  /**
   * Records that a response has arrived. If no departure was seen, reports one: the request has left by now, or a
   * cache has answered.
   */
  arrived(): void {
    this.#letGo();
    // A repetition with credentials is not reported by the browser, so the response is taken as proof that it has
    // left.
    if (!this.#hasStarted || this.#moments > 0 || this.#isSending) this.#onStarted();
  }

  /**
   * Records that the browser has stopped its request with an error. Stops watching its tunnels, because the next
   * request may need a tunnel before this page is reset.
   */
  failed(): void {
    this.#letGo();
  }

  /** Forbids further requests. When the browser has stopped, the caller disposes of this object. */
  end(): void {
    this.#hasEnded = true;
    this.#mark?.[Symbol.dispose]();
  }

  /**
   * Waits for the time window of another request for the same document. Resolves with whether that request may leave.
   */
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
      // A rejection means that the request must not leave. The caller learns that from `mayLeave`.
    });
  }

  async #onSend(): Promise<void> {
    const { leave, session } = this.#parts;
    if (this.#hasEnded) return;
    leave.onStarting();
    this.#moments = Math.max(0, this.#moments - 1);
    this.#isSending = true;
    // A reply to this command proves that the request has been sent: one thread of the browser reports it, sends it,
    // and then handles this command.
    await session.send("Network.getCookies", { urls: [] }).catch(() => {});
    // Lets our proxy first forward the bytes that the browser has written so far.
    await pollAgain();
    if (this.#isSending) this.#onStarted();
  }

  #onStarted(): void {
    this.#hasStarted = true;
    this.#isSending = false;
    this.#parts.leave.onStarted();
  }
}
