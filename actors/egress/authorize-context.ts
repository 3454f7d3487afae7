/** Gives the credentials of its proxy to a browser context, so that all later requests of the context carry them. */
import type { CDPSession, Page, Protocol } from "puppeteer-core";
import { AUTHORIZE_URL, type EgressProxy } from "./egress-proxy.ts";

/**
 * Call this function once per context with a new page of the context, before the page is used. The page stays blank.
 * Chromium keeps the credentials of a proxy per context, also for WebSockets. Only this first request is intercepted,
 * so later requests need no interception, and `page.authenticate` stays free for the credentials of the site.
 */
export async function authorizeContext(page: Page, proxy: EgressProxy): Promise<void> {
  await page.authenticate(proxy.credentials);
  try {
    const response = await page.goto(AUTHORIZE_URL);
    throw new Error(`Cannot authorize a context at its proxy: it answered ${response?.status()}`);
  } catch (error) {
    // The proxy answers without content, so the page does not navigate. Chromium reports that as an aborted
    // navigation.
    if (!(error instanceof Error && error.message.includes("net::ERR_ABORTED"))) throw error;
  }
  await page.authenticate(null);
}

/**
 * Gives the credentials of the proxy to the context with the first document that the page requests. This saves the
 * request of `authorizeContext`, which takes a quarter of the time of a small PDF. No other code may use the Fetch
 * domain of this session until that document arrives. The promise resolves when the page may load.
 */
export async function authorizeWithDocument(
  session: CDPSession,
  { credentials }: Pick<EgressProxy, "credentials">,
): Promise<void> {
  // Errors are ignored: a closed page needs no response.
  const send = async (...[method, parameters]: Parameters<CDPSession["send"]>) =>
    void (await session.send(method, parameters).catch(() => {}));
  const paused = ({ requestId }: Protocol.Fetch.RequestPausedEvent) =>
    void send("Fetch.continueRequest", { requestId });
  let isKnown = false;
  const asked = async ({ requestId, authChallenge }: Protocol.Fetch.AuthRequiredEvent) => {
    // The proxy sends its challenge before any site receives a request. A later challenge of a site gets no
    // credentials.
    const isProxy = authChallenge.source === "Proxy" && !isKnown;
    isKnown = true;
    const answer = isProxy
      ? ({ response: "ProvideCredentials", ...credentials } as const)
      : ({ response: "Default" } as const);
    await send("Fetch.continueWithAuth", { requestId, authChallengeResponse: answer });
    await send("Fetch.disable");
    session.off("Fetch.requestPaused", paused).off("Fetch.authRequired", asked);
  };
  session.on("Fetch.requestPaused", paused).on("Fetch.authRequired", asked);
  const patterns = [{ resourceType: "Document" as const }];
  await session.send("Fetch.enable", { patterns, handleAuthRequests: true });
}
