/** The browser of one DevTools session: a separate process tree and one proxy for all its contexts. */
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import { AUTHORIZE_URL, EgressProxy } from "../../../egress/egress-proxy.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import { Chromium } from "../../lib/browser/chromium.ts";
import { POOL_LIMITS } from "../../lib/browser/pool-limits.ts";
import { isForbiddenAddress } from "./cdp-filter.ts";
import type { CdpMessage, Json } from "./cdp-message.ts";
import { CdpRouter } from "./cdp-router.ts";

export interface SessionBrowserOptions {
  executablePath: string;
  guard: EgressGuard;
  bytesMax: number;
  clock: Clock;
  /** Called when a page shows an address that is forbidden in sessions. */
  onForbiddenPage: (url: string) => void;
}

interface TargetInfo {
  targetId: string;
  type: string;
  title: string;
  url: string;
  browserContextId?: string;
}

export class SessionBrowser {
  readonly chromium: Chromium;
  readonly router: CdpRouter;
  readonly #proxy: EgressProxy;
  /** Contexts that no client knows yet, and internal pages. Both are hidden from clients. */
  readonly #hiddenContexts = new Set<string>();
  readonly #hiddenTargets = new Set<string>();

  /**
   * Resolves when clients may use the browser: its requests carry the credentials of the proxy, and downloads are
   * off.
   */
  static async start(options: SessionBrowserOptions): Promise<SessionBrowser> {
    const { executablePath, guard, bytesMax, clock } = options;
    const ms = POOL_LIMITS.startMs;
    const proxy = await EgressProxy.open({ guard, bytesMax });
    let chromium: Chromium | undefined;
    try {
      chromium = await Chromium.start({ executablePath, driven: { proxyServer: proxy.url } });
      const browser = new SessionBrowser({ chromium, proxy, ...options });
      const error = () => new Error(`it did not answer in ${ms} ms`);
      await within({ ms, error, signal: chromium.ended, clock }, () => browser.#prepare());
      return browser;
    } catch (cause) {
      await Promise.allSettled([chromium?.kill(), proxy.close()]);
      const found = chromium?.stderr || (cause instanceof Error ? cause.message : String(cause));
      throw new Error(`Cannot start browser: ${found}`, { cause });
    }
  }

  /** Use `start`. */
  constructor(parts: {
    chromium: Chromium;
    proxy: EgressProxy;
    onForbiddenPage: (url: string) => void;
  }) {
    this.chromium = parts.chromium;
    this.#proxy = parts.proxy;
    this.router = new CdpRouter(parts.chromium.transport);
    this.router.onEvent = (_method, { targetInfo }) => {
      const url = isTargetInfo(targetInfo) ? targetInfo.url : "";
      if (isForbiddenAddress(url)) parts.onForbiddenPage(url);
    };
  }

  /** Returns the targets of the client's pages, without internal pages. */
  async targets(): Promise<TargetInfo[]> {
    const { targetInfos } = await this.router.call("Target.getTargets");
    const all = Array.isArray(targetInfos) ? targetInfos.filter(isTargetInfo) : [];
    // Targets of type "tab" are omitted: a tab is the browser's container of a page, and DevTools target lists omit
    // it.
    return all.filter((target) => target.type !== "tab" && !this.#isHidden(target));
  }

  /**
   * Creates a context for a client's session. The context gets the credentials of the proxy before the client learns
   * of it. `settle` receives the response for the client.
   */
  createContext(params: Json, sessionId: string, settle: (answer: CdpMessage) => void): void {
    const proxied = {
      ...params,
      proxyServer: this.#proxy.url,
      // Requests to loopback addresses also go through the proxy, which refuses them.
      proxyBypassList: "<-loopback>",
    };
    const method = "Target.createBrowserContext";
    this.router.send({ method, params: proxied, sessionId }, (answer) => {
      const context = answer.result?.browserContextId;
      if (typeof context !== "string") return settle(answer);
      this.#hiddenContexts.add(context);
      void this.#introduce(context).then(
        () => settle(answer),
        (error: Error) => settle({ error: { code: -32_000, message: error.message } }),
      );
    });
  }

  /** Whether this event of the browser is about an internal page or a context that no client knows yet. */
  hides({ params = {} }: CdpMessage): boolean {
    if (isTargetInfo(params.targetInfo)) return this.#isHidden(params.targetInfo);
    return typeof params.targetId === "string" && this.#hiddenTargets.has(params.targetId);
  }

  async close(): Promise<void> {
    await Promise.all([this.chromium.kill(), this.#proxy.close()]);
  }

  async #prepare(): Promise<void> {
    const { router } = this;
    await router.call("Target.setDiscoverTargets", { discover: true, filter: [{}] });
    const page = (await this.targets()).find(({ type }) => type === "page");
    if (!page) throw new Error("it has no page");
    await this.#authorize(page.targetId);
    await router.call("Browser.setDownloadBehavior", { behavior: "deny" });
  }

  async #introduce(browserContextId: string): Promise<void> {
    const { router } = this;
    await router.call("Browser.setDownloadBehavior", { behavior: "deny", browserContextId });
    const made = await router.call("Target.createTarget", { url: "about:blank", browserContextId });
    const targetId = String(made.targetId);
    this.#hiddenTargets.add(targetId);
    await this.#authorize(targetId);
    await router.call("Target.closeTarget", { targetId });
    this.#hiddenContexts.delete(browserContextId);
  }

  /** Gives the proxy's credentials to the context of a blank page. Chromium keeps them for the whole context. */
  async #authorize(targetId: string): Promise<void> {
    const { router } = this;
    const attached = await router.call("Target.attachToTarget", { targetId, flatten: true });
    const sessionId = String(attached.sessionId);
    router.own(sessionId, ({ method, params: { requestId } = {} }) => {
      const authChallengeResponse = { response: "ProvideCredentials", ...this.#proxy.credentials };
      if (method === "Fetch.requestPaused")
        router.send({ method: "Fetch.continueRequest", params: { requestId }, sessionId }, ignore);
      if (method !== "Fetch.authRequired") return;
      const params = { requestId, authChallengeResponse };
      router.send({ method: "Fetch.continueWithAuth", params, sessionId }, ignore);
    });
    try {
      await router.call("Fetch.enable", { handleAuthRequests: true }, sessionId);
      const { errorText } = await router.call("Page.navigate", { url: AUTHORIZE_URL }, sessionId);
      // The proxy answers without content, so the page does not navigate. Chromium reports that as an aborted
      // navigation.
      if (errorText !== "net::ERR_ABORTED")
        throw new Error(`Cannot authorize a context at its proxy: ${errorText}`);
      await router.call("Target.detachFromTarget", { sessionId });
    } finally {
      router.disown(sessionId);
    }
  }

  #isHidden({ targetId, browserContextId }: TargetInfo): boolean {
    const isOfHidden = browserContextId !== undefined && this.#hiddenContexts.has(browserContextId);
    return isOfHidden || this.#hiddenTargets.has(targetId);
  }
}

function isTargetInfo(value: unknown): value is TargetInfo {
  return typeof value === "object" && value !== null && "targetId" in value && "url" in value;
}

function ignore(): void {}
