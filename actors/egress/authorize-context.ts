/** Makes a browser context known to its proxy, so that all of its requests carry the credentials from then on. */
import type { CDPSession, Page, Protocol } from "puppeteer-core";
import { AUTHORIZE_URL, type EgressProxy } from "./egress-proxy.ts";

/**
 * Call once per context with a fresh page of it, before the page is used; the page stays blank.
 * Chromium keeps a proxy's credentials per context, for WebSockets too. Only this first request asks for them, so
 * that requests need not be intercepted later, and `page.authenticate` is free for the site's own credentials.
 */
export async function authorizeContext(page: Page, proxy: EgressProxy): Promise<void> {
  await page.authenticate(proxy.credentials);
  try {
    const response = await page.goto(AUTHORIZE_URL);
    throw new Error(`Cannot authorize a context at its proxy: it answered ${response?.status()}`);
  } catch (error) {
    // An answer without content leaves the page where it is, which Chromium calls aborted.
    if (!(error instanceof Error && error.message.includes("net::ERR_ABORTED"))) throw error;
  }
  await page.authenticate(null);
}

/**
 * Does the same with the first document that the page requests, and saves the request that `authorizeContext` makes: a
 * quarter of the time of a small PDF. The session must be no other's to stop requests by, until that document comes.
 * Resolves when the page may load.
 */
export async function authorizeWithDocument(
  session: CDPSession,
  { credentials }: Pick<EgressProxy, "credentials">,
): Promise<void> {
  // A page that is gone needs no answers.
  const send = async (...[method, parameters]: Parameters<CDPSession["send"]>) =>
    void (await session.send(method, parameters).catch(() => {}));
  const paused = ({ requestId }: Protocol.Fetch.RequestPausedEvent) =>
    void send("Fetch.continueRequest", { requestId });
  let isKnown = false;
  const asked = async ({ requestId, authChallenge }: Protocol.Fetch.AuthRequiredEvent) => {
    // The proxy challenges before any site gets a request. A later challenge by a site gets no password.
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
