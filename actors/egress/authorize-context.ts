/** Makes a browser context known to its proxy, so that all of its requests carry the credentials from then on. */
import type { Page } from "puppeteer-core";
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
