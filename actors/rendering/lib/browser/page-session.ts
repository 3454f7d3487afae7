/**
 * Puppeteer's own session of a page, which its types leave out. Another would have the browser tell everything twice.
 */
import type { CDPSession, Page } from "puppeteer-core";

export function sessionOf(page: Page): CDPSession {
  return (page as unknown as { _client(): CDPSession })._client();
}
