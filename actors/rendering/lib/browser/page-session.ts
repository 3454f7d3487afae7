/**
 * Returns puppeteer's own session of a page, which puppeteer's types omit. With another session the browser would
 * send every event twice.
 */
import type { CDPSession, Page } from "puppeteer-core";

export function sessionOf(page: Page): CDPSession {
  return (page as unknown as { _client(): CDPSession })._client();
}
