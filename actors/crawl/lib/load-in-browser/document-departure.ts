/**
 * The leaving of a document's request from a browser: at its moment or not at all, and told when it happens. Browsers
 * connect when they like, and send again what failed. Over http: a request passes our proxy whole, which knows it by a mark
 * and holds it until it may leave. Over https: nothing is seen of it there: the browser tells when it sends, and until
 * an answer comes the proxy cuts its tunnels as soon as it must not, or it would be sent again.
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
  /** Requests it may make and has not made: the site has set a moment for each. */
  #moments = 1;
  #hasStarted = false;
  /** The browser has said that it sends one, which is not told yet. */
  #isSending = false;
  #isOver = false;
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

  /** Fields that the request needs. */
  get headers(): Record<string, string> {
    return this.#mark === undefined ? {} : { [MARK_HEADER]: this.#mark.value };
  }

  /** Whether the browser may go on, once it may. Over http: it does so ahead, since the request waits in our proxy. */
  async mayGoOn(): Promise<boolean> {
    if (this.#mark === undefined) await this.#due();
    return this.#mayLeave();
  }

  /** The browser is about to be told to go on. */
  release(networkId: string): void {
    if (this.#mark !== undefined) return;
    const { url, leave, egress, session } = this.#parts;
    leave.onUnseen();
    let isBroken = false;
    this.#tunnels = egress.holdTunnels(url, {
      mayPass: () => !isBroken && this.#mayLeave(),
      // Whether it was this request's or not: sent again it would be one that had no turn.
      onUnanswered() {
        isBroken = true;
      },
    });
    const onSend = ({ requestId }: SendInfo) => {
      if (requestId === networkId) void this.#onSend();
    };
    session.on("Network.requestWillBeSentExtraInfo", onSend);
    // Commands are carried out in order: it knows before the request goes on, and stops before anybody else enables it.
    session.send("Network.enable").catch(() => {});
    this.#stopWatching = () => {
      this.#stopWatching = () => {};
      session.off("Network.requestWillBeSentExtraInfo", onSend);
      session.send("Network.disable").catch(() => {});
    };
  }

  /** An answer has come: if nothing was seen of its request, it came from a cache, or it has left by now. */
  arrived(): void {
    this.#letGo();
    // A request with credentials is not told of by the browser.
    if (!this.#hasStarted || this.#moments > 0 || this.#isSending) this.#onStarted();
  }

  /**
   * The browser has given its request up and makes it no more: tunnels are cut for its sake no longer. The page's next
   * request, or another page's, may want one before this page is reset.
   */
  failed(): void {
    this.#letGo();
  }

  /** From now on nothing may leave any more. To be disposed of when the browser knows. */
  end(): void {
    this.#isOver = true;
    this.#mark?.[Symbol.dispose]();
  }

  /** The browser needs another request for the same document: whether it may make it, once it may. */
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
    return !this.#isOver && this.#parts.leave.mayLeave();
  }

  async #leaveNow(): Promise<boolean> {
    await this.#due();
    if (!this.#isOver) this.#parts.leave.onStarting();
    return this.#mayLeave();
  }

  async #due(): Promise<void> {
    await this.#parts.leave.due().catch(() => {
      // Then it may not leave.
    });
  }

  async #onSend(): Promise<void> {
    const { leave, session } = this.#parts;
    if (this.#isOver) return;
    leave.onStarting();
    this.#moments = Math.max(0, this.#moments - 1);
    this.#isSending = true;
    // The browser tells of it just before it does it, in one step of the part that answers this: so it has done it then.
    await session.send("Network.getCookies", { urls: [] }).catch(() => {});
    // What it has written by then passes our proxy before this goes on.
    await pollAgain();
    if (this.#isSending) this.#onStarted();
  }

  #onStarted(): void {
    this.#hasStarted = true;
    this.#isSending = false;
    this.#parts.leave.onStarted();
  }
}
